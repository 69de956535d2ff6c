#include "src/os/kernel_use.hpp"

#include "src/base/shared_atomics.hpp"

namespace arctrace {
namespace {

// For each use: how often it was forbidden, less how often that was taken back.
uint32_t ordinary_forbidden;
uint32_t threads_forbidden;
uint32_t file_looks_forbidden;
uint32_t memory_probes_forbidden;

constexpr KernelUse kUses[] = {kOrdinaryUse, kThreadUse, kFileLookUse, kMemoryProbeUse};

uint32_t& count_of(KernelUse use) {
  switch (use) {
    case kOrdinaryUse:
      return ordinary_forbidden;
    case kThreadUse:
      return threads_forbidden;
    case kFileLookUse:
      return file_looks_forbidden;
    default:
      return memory_probes_forbidden;
  }
}

void add_to(uint32_t uses, uint32_t number) {
  for (const KernelUse use : kUses) {
    if ((uses & use) != 0) IpcAtomics::fetch_add_relaxed(count_of(use), number);
  }
}

}  // namespace

void forbid_uses(uint32_t uses) { add_to(uses, 1); }

void take_back_forbidden(uint32_t uses) { add_to(uses, ~uint32_t{0}); }  // adds -1

bool may_call_kernel() { return IpcAtomics::load_relaxed(ordinary_forbidden) == 0; }

bool may_use_kernel(KernelUse use) {
  return may_call_kernel() || IpcAtomics::load_relaxed(count_of(use)) == 0;
}

}  // namespace arctrace
