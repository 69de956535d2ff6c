// Copies a filter of the program, which may be anything, and has it judged.
#include "src/process/confinement.hpp"

#include <linux/bpf_common.h>

#include "src/base/large_table.hpp"
#include "src/base/memory.hpp"
#include "src/base/shared_atomics.hpp"
#include "src/os/kernel_use.hpp"
#include "src/os/seccomp_filter.hpp"
#include "src/process/session.hpp"

namespace arctrace::writer {
namespace {

// The memory for judging a filter, too large for a thread's stack. `claim` lets one
// thread in at a time.
struct Judging {
  uint32_t claim;
  sock_filter program[BPF_MAXINSNS];
  FilterState states[BPF_MAXINSNS];
};
ARCTRACE_LARGE_TABLE Judging judging;

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
  const uint32_t forbidden =
      forbidden_uses(judging.program, program.len, session.is_map, judging.states);
  IpcAtomics::store_release(judging.claim, uint32_t{0});
  return forbidden;
}

}  // namespace arctrace::writer
