// Reads the filters of stopped threads by ptrace, which only root may do.
#include "src/recorder/attach/seccomp_check.hpp"

#include <absl/status/statusor.h>
#include <absl/strings/numbers.h>
#include <absl/strings/str_cat.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/seccomp.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <string>
#include <system_error>
#include <vector>

#include "src/os/kernel_use.hpp"
#include "src/os/seccomp_filter.hpp"
#include "src/recorder/attach/process_status.hpp"
#include "src/recorder/attach/stopped_thread.hpp"

namespace arctrace::recorder {
namespace {

// A system call that the borrowed thread makes when it joins, beside those of the writer.
// Functions are not patched under a filter (ARCTRACE_PATCH_CONFINED), which takes more.
struct JoinCall {
  const char* name;
  ForeseenCall call;
};

constexpr JoinCall kJoinCalls[] = {
    {"mmap", {SYS_mmap, 0, {}}},
    {"mmap of code", {SYS_mmap, 4, {0, 0, PROT_READ | PROT_EXEC}}},
    {"mprotect", {SYS_mprotect, 0, {}}},
    {"munmap", {SYS_munmap, 0, {}}},
    {"openat", {SYS_openat, 4, {0, 0, O_RDONLY | O_CLOEXEC}}},
    {"newfstatat", {SYS_newfstatat, 0, {}}},
    {"read", {SYS_read, 0, {}}},
    {"pread64", {SYS_pread64, 0, {}}},
    {"close", {SYS_close, 0, {}}},
    {"brk", {SYS_brk, 0, {}}},
    {"socketpair", {SYS_socketpair, 1, {AF_UNIX}}},
    {"recvmsg", {SYS_recvmsg, 0, {}}},
    {"rt_sigreturn", {SYS_rt_sigreturn, 0, {}}},
    {"rt_sigaction", {SYS_rt_sigaction, 0, {}}},
    {"fcntl", {SYS_fcntl, 0, {}}},
    {"prctl", {SYS_prctl, 1, {PR_GET_SECCOMP}}},
    {"mremap", {SYS_mremap, 0, {}}},  // to leave an earlier session
};

// The modes, as /proc/PID/status has them; what has ended has none.
constexpr int64_t kNone = 0;
constexpr int64_t kStrict = 1;

absl::Status refused(const std::string& why) {
  return absl::FailedPreconditionError(
      absl::StrCat("a seccomp filter confines it, ", why));
}

constexpr char kOnlyRoot[] =
    "which only root may read, outside of containers: run arctrace as root, or start it "
    "with arctrace record";

// Whether the kernel may show filters to this process.
bool may_read_filters() {
  constexpr uint64_t kAdmin = uint64_t{1} << CAP_SYS_ADMIN;
  return (capabilities_of(read_status(getpid())) & kAdmin) != 0;
}

// The stopped thread's filter of this number, the newest being 0; an empty one: there is
// none of this number.
absl::StatusOr<std::vector<sock_filter>> read_filter(pid_t tid, unsigned long number) {
  constexpr auto kGetFilter = static_cast<__ptrace_request>(0x420c);
  const long length = ptrace(kGetFilter, tid, number, nullptr);
  if (length < 0 && errno == ENOENT) return std::vector<sock_filter>();
  if (length < 0) {
    return refused(errno == EACCES ? kOnlyRoot
                                   : "which this kernel does not show: start it with "
                                     "arctrace record");
  }
  std::vector<sock_filter> filter(static_cast<size_t>(length));
  if (ptrace(kGetFilter, tid, number, filter.data()) != length) {
    return refused("which cannot be read: start it with arctrace record");
  }
  return filter;
}

absl::Status judge(const std::vector<sock_filter>& filter) {
  std::vector<FilterState> states(filter.size());
  const auto length = static_cast<uint32_t>(filter.size());
  for (const JoinCall& own : kJoinCalls) {
    if (judge_call(filter.data(), length, own.call, states.data()) !=
        FilterVerdict::kAllowed) {
      return refused(absl::StrCat("which may forbid the system call ", own.name,
                                  " that joining needs; start it with arctrace record"));
    }
  }
  if (forbidden_uses(filter.data(), length, true, states.data()) != 0) {
    return refused(
        "which may forbid system calls of its recording; start it with arctrace record");
  }
  return absl::OkStatus();
}

absl::Status check_thread(pid_t tid) {
  absl::StatusOr<StoppedThread> thread = StoppedThread::ask_to_stop(tid);
  if (!thread.ok() || !thread->await_stop().ok()) {
    const bool has_ended = read_status(tid).empty();
    return has_ended ? absl::OkStatus()
                     : refused("and one of its threads cannot be stopped to read it");
  }
  for (unsigned long number = 0;; ++number) {
    const absl::StatusOr<std::vector<sock_filter>> filter = read_filter(tid, number);
    if (!filter.ok()) return filter.status();
    if (filter->empty()) return absl::OkStatus();
    if (absl::Status judged = judge(*filter); !judged.ok()) return judged;
  }
}

}  // namespace

absl::Status check_seccomp(pid_t pid) {
  namespace fs = std::filesystem;
  std::error_code error;
  fs::directory_iterator task(absl::StrCat("/proc/", pid, "/task"), error);
  for (; !error && task != fs::directory_iterator(); task.increment(error)) {
    pid_t tid = 0;
    if (!absl::SimpleAtoi(task->path().filename().native(), &tid)) continue;
    const int64_t mode = number_of(read_status(tid), "Seccomp");
    if (mode == kNone) continue;
    if (mode == kStrict) return refused("in strict mode, which permits no other calls");
    if (!may_read_filters()) return refused(kOnlyRoot);
    if (absl::Status checked = check_thread(tid); !checked.ok()) return checked;
  }
  return absl::OkStatus();
}

}  // namespace arctrace::recorder
