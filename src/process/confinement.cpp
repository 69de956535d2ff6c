#include "src/process/confinement.hpp"

#include <linux/futex.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>

#include "src/base/memory.hpp"
#include "src/base/raw_syscall.hpp"
#include "src/base/shared_atomics.hpp"
#include "src/os/kernel_use.hpp"
#include "src/os/readable_memory.hpp"
#include "src/process/seccomp_filter.hpp"
#include "src/process/session.hpp"

namespace arctrace {
namespace {

// A system call that we make, and the uses for which it must succeed. For ordinary use
// every call must at least do no harm.
struct OwnCall {
  ForeseenCall call;
  uint32_t needed_for;
};

constexpr uint32_t kPrivate = MAP_PRIVATE | MAP_ANONYMOUS;
constexpr uint64_t kReadWrite = PROT_READ | PROT_WRITE;
constexpr uint64_t kJoinFlags = O_RDWR | O_CLOEXEC | O_NOFOLLOW;

constexpr OwnCall kOwnCalls[] = {
    {{SYS_rt_sigprocmask, 1, {SIG_SETMASK}}, kOrdinaryUse | kThreadUse},
    {{SYS_rt_sigprocmask, 0, {}}, kMemoryProbeUse},
    {{SYS_set_robust_list, 2, {0, sizeof(robust_list_head)}}, kOrdinaryUse | kThreadUse},
    {{SYS_get_robust_list, 1, {0}}, kOrdinaryUse},
    {{SYS_gettid, 0, {}}, kOrdinaryUse},
    {{SYS_getpid, 0, {}}, kOrdinaryUse},
    {{SYS_openat, 4, {0, 0, kJoinFlags}}, kOrdinaryUse},
    {{SYS_openat, 4, {0, 0, O_RDONLY | O_CLOEXEC}}, kOrdinaryUse},
    {{SYS_fstat, 0, {}}, kOrdinaryUse},
    {{SYS_pread64, 0, {}}, kOrdinaryUse},
    {{SYS_close, 0, {}}, kOrdinaryUse},
    {{SYS_mmap, 12, {0, 0, kReadWrite, MAP_SHARED}}, kOrdinaryUse},
    {{SYS_mmap, 12, {0, 0, kReadWrite, kPrivate}}, kOrdinaryUse},
    {{SYS_madvise, 4, {0, 0, MADV_WIPEONFORK}}, kOrdinaryUse},
    {{SYS_faccessat, 0, {}}, kFileLookUse},
    {{SYS_openat, 0, {}}, 0},
    {{SYS_mmap, 0, {}}, 0},
    {{SYS_munmap, 0, {}}, 0},
    {{SYS_mprotect, 0, {}}, 0},
    {{SYS_read, 0, {}}, 0},
    {{SYS_fcntl, 0, {}}, 0},
    {{SYS_newfstatat, 0, {}}, 0},
    {{SYS_statfs, 0, {}}, 0},
    {{SYS_fstatfs, 0, {}}, 0},
    {{SYS_readlinkat, 0, {}}, 0},
    {{SYS_getcwd, 0, {}}, 0},
    {{SYS_fgetxattr, 0, {}}, 0},
    {{SYS_getuid, 0, {}}, 0},
    {{SYS_geteuid, 0, {}}, 0},
    {{SYS_getgid, 0, {}}, 0},
    {{SYS_getegid, 0, {}}, 0},
    {{SYS_getgroups, 0, {}}, 0},
    {{SYS_getppid, 0, {}}, 0},
    {{SYS_sigaltstack, 1, {0}}, 0},
    {{SYS_prctl, 1, {PR_GET_NAME}}, 0},
    {{SYS_prctl, 1, {PR_GET_NO_NEW_PRIVS}}, 0},
    {{SYS_futex, 2, {0, FUTEX_WAKE}}, 0},
    {{SYS_prlimit64, 0, {}}, 0},
    {{SYS_process_vm_readv, 0, {}}, 0},
    {{SYS_bpf, 0, {}}, 0},
};

// The memory for judging a filter, too large for a thread's stack. `claim` lets one
// thread in at a time.
struct Judging {
  uint32_t claim;
  sock_filter program[BPF_MAXINSNS];
  FilterState states[BPF_MAXINSNS];
};
Judging judging;

uint32_t uses_forbidden(const sock_filter* program, uint32_t length) {
  uint32_t forbidden = 0;
  for (const OwnCall& own : kOwnCalls) {
    if (own.call.number == SYS_bpf && !session.is_map) continue;
    const FilterVerdict verdict = judge_call(program, length, own.call, judging.states);
    if (verdict != FilterVerdict::kAllowed) forbidden |= own.needed_for;
    if (verdict == FilterVerdict::kHarms) forbidden |= kOrdinaryUse;
  }
  return forbidden;
}

}  // namespace

uint32_t uses_forbidden_by(const sock_fprog* filter) {
  if (filter == nullptr) return kAllUses;
  if (!may_use_kernel(kMemoryProbeUse)) return kAllUses;
  ReadableMemory readable;
  if (!readable.has(filter, sizeof *filter)) return 0;
  const sock_fprog program = *filter;
  if (program.len > BPF_MAXINSNS ||
      !readable.has(program.filter, program.len * sizeof(sock_filter))) {
    return 0;
  }
  uint32_t nobody = 0;
  if (!IpcAtomics::compare_exchange_acq_rel(judging.claim, nobody, uint32_t{1})) {
    return kAllUses;
  }
  copy_bytes(judging.program, program.filter, program.len * sizeof(sock_filter));
  const uint32_t forbidden = uses_forbidden(judging.program, program.len);
  IpcAtomics::store_release(judging.claim, uint32_t{0});
  return forbidden;
}

}  // namespace arctrace
