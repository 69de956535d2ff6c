#include "tests/support/exit_hooked_function.hpp"

#include <cstddef>

#include "src/api/shim_interface.h"
#include "tests/support/filter_flags.hpp"

#if defined(__x86_64__)

namespace {

// The call of the function below, and the function that this one calls.
struct ExitHookedCall {
  arctrace_shim_stub_call call;
  void (*run)(const void*);
  const void* context;
};
static_assert(offsetof(ExitHookedCall, run) == 24 &&
              offsetof(ExitHookedCall, context) == 32);

}  // namespace

extern "C" void arctrace_test_call_exit_hooked(const ExitHookedCall* call);

// A function whose entry hook has only what stubs store below its return address, and
// whose return hook has only that on the stack. The call before it aligns the stack for
// the hooks, which are compiled here as other functions are.
asm(R"(
  .text
  .type arctrace_test_call_exit_hooked, @function
arctrace_test_call_exit_hooked:
  .cfi_startproc
  call 1f
  ret
  .cfi_endproc
1:
  .cfi_startproc
  pushq %rbp
  .cfi_adjust_cfa_offset 8
  pushq %rdi
  .cfi_adjust_cfa_offset 8
  call arctrace_shim_function_entry@PLT
  movq (%rsp), %rdi
  movq 24(%rdi), %rax
  movq 32(%rdi), %rdi
  call *%rax
  addq $8, %rsp
  .cfi_adjust_cfa_offset -8
  popq %rbp
  .cfi_adjust_cfa_offset -8
  call arctrace_shim_function_return@PLT
  ret
  .cfi_endproc
  .size arctrace_test_call_exit_hooked, . - arctrace_test_call_exit_hooked
)");

namespace arctrace::testing {
namespace {

void enter_exit_hooked_slowly(uintptr_t* return_slot) {
  const auto* call = reinterpret_cast<const arctrace_shim_stub_call*>(
      return_slot[ARCTRACE_SHIM_ENTERED_CALL]);
  arctrace_shim_enter_exit_hooked(call->key, return_slot,
                                  return_slot[ARCTRACE_SHIM_ENTERED_FRAME_POINTER],
                                  filter_flags(call->key));
}

void leave_exit_hooked_slowly(uintptr_t* return_slot, uintptr_t /*hook_site*/) {
  arctrace_shim_leave_exit_hooked(return_slot);
}

}  // namespace

void start_exit_hooked_functions() {
  arctrace_shim_set_slow_returns(enter_exit_hooked_slowly, leave_exit_hooked_slowly);
}

void call_exit_hooked(uint64_t key, const std::function<void()>& body) {
  const ExitHookedCall call = {{0, key, 0, 0, 0},
                               [](const void* context) {
                                 (*static_cast<const std::function<void()>*>(context))();
                               },
                               &body};
  arctrace_test_call_exit_hooked(&call);
}

}  // namespace arctrace::testing

#else

void arctrace::testing::start_exit_hooked_functions() {}

#endif
