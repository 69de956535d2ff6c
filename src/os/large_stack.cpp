// Maps stacks for slow paths, and runs functions on them.
#include "src/os/large_stack.hpp"

#include <sys/mman.h>

#include <cstddef>
#include <cstdint>

#include "src/base/large_table.hpp"
#include "src/base/raw_syscall.hpp"
#include "src/base/shared_atomics.hpp"
#include "src/os/kernel_use.hpp"

#if defined(__x86_64__)
extern "C" void arctrace_call_on_stack(void (*run)(void* data), void* data,
                                       uintptr_t stack_end);
#endif

namespace arctrace {

#if defined(__x86_64__)
namespace {

// So many threads can be in a slow path at the same time without running on short stacks.
constexpr size_t kLargeStacks = 32;
constexpr size_t kLargeStackSize = size_t{64} << 10;
constexpr size_t kGuardSize = size_t{4} << 10;

struct LargeStack {
  uint32_t is_taken;  // by a thread
  uintptr_t low;      // 0: not mapped; changed by the thread that has taken it
};
ARCTRACE_LARGE_TABLE LargeStack large_stacks[kLargeStacks];

bool is_mapped(LargeStack& stack) {
  if (IpcAtomics::load_relaxed(stack.low) != 0) return true;
  constexpr size_t kSize = kGuardSize + kLargeStackSize;
  void* const mapped = sys::map(kSize, PROT_READ | PROT_WRITE,
                                MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1);
  if (mapped == nullptr) return false;
  raw_syscall(SYS_mprotect, sys::pointer_argument(mapped), kGuardSize, PROT_NONE);
  IpcAtomics::store_relaxed(stack.low, reinterpret_cast<uintptr_t>(mapped) + kGuardSize);
  return true;
}

LargeStack* take_stack() {
  for (LargeStack& stack : large_stacks) {
    uint32_t nobody = 0;
    if (IpcAtomics::load_relaxed(stack.is_taken) != 0 ||
        !IpcAtomics::compare_exchange_acq_rel(stack.is_taken, nobody, uint32_t{1})) {
      continue;
    }
    if (is_mapped(stack)) return &stack;
    IpcAtomics::store_release(stack.is_taken, uint32_t{0});
    return nullptr;
  }
  return nullptr;
}

bool is_on_large_stack() {
  const auto here = reinterpret_cast<uintptr_t>(__builtin_frame_address(0));
  for (LargeStack& stack : large_stacks) {
    // A stack that another thread is just mapping is not the one that this thread is on.
    const uintptr_t low = IpcAtomics::load_relaxed(stack.low);
    if (low != 0 && here - low < kLargeStackSize) return true;
  }
  return false;
}

}  // namespace

__attribute__((noinline)) void run_on_large_stack(void (*run)(void* data), void* data) {
  if (!may_call_kernel() || is_on_large_stack()) return run(data);
  const sys::SignalsBlocked blocked;
  LargeStack* const stack = take_stack();
  if (stack == nullptr) return run(data);
  arctrace_call_on_stack(run, data, stack->low + kLargeStackSize);
  IpcAtomics::store_release(stack->is_taken, uint32_t{0});
}

void free_large_stacks() {
  for (LargeStack& stack : large_stacks) {
    IpcAtomics::store_release(stack.is_taken, uint32_t{0});
  }
}
#else
void run_on_large_stack(void (*run)(void* data), void* data) { run(data); }
void free_large_stacks() {}
#endif

}  // namespace arctrace
