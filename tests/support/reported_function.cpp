#include "tests/support/reported_function.hpp"

#include "src/api/shim_interface.h"

#if defined(__x86_64__)

extern "C" void arctrace_test_call_reported(const arctrace_shim_stub_call* call,
                                            void (*run)(const void*),
                                            const void* context);

// A function whose entry hook and return hook are called with nothing but its return
// address on the stack.
asm(R"(
  .text
  .type arctrace_test_call_reported, @function
arctrace_test_call_reported:
  .cfi_startproc
  pushq %rbp
  .cfi_adjust_cfa_offset 8
  pushq %rdi
  .cfi_adjust_cfa_offset 8
  pushq %rsi
  .cfi_adjust_cfa_offset 8
  pushq %rdx
  .cfi_adjust_cfa_offset 8
  leaq 32(%rsp), %rdi
  subq $8, %rsp
  .cfi_adjust_cfa_offset 8
  call arctrace_shim_function_entry@PLT
  addq $8, %rsp
  .cfi_adjust_cfa_offset -8
  popq %rdi
  .cfi_adjust_cfa_offset -8
  popq %rsi
  .cfi_adjust_cfa_offset -8
  addq $8, %rsp
  .cfi_adjust_cfa_offset -8
  call *%rsi
  popq %rbp
  .cfi_adjust_cfa_offset -8
  call arctrace_shim_function_return@PLT
  ret
  .cfi_endproc
  .size arctrace_test_call_reported, . - arctrace_test_call_reported
)");

namespace arctrace::testing {
namespace {

void enter_reported_slowly(uintptr_t* return_slot) {
  const auto* call = reinterpret_cast<const arctrace_shim_stub_call*>(
      return_slot[ARCTRACE_SHIM_ENTERED_CALL]);
  arctrace_shim_enter_reported(call->key, return_slot,
                               return_slot[ARCTRACE_SHIM_ENTERED_FRAME_POINTER], 0);
}

void exit_reported_slowly(uintptr_t* return_slot, uintptr_t /*hook_site*/) {
  arctrace_shim_exit_reported(return_slot);
}

}  // namespace

void start_reported_functions() {
  arctrace_shim_set_slow_returns(enter_reported_slowly, exit_reported_slowly);
}

void call_reported(uint64_t key, const std::function<void()>& body) {
  const arctrace_shim_stub_call call = {0, key, 0, 0};
  arctrace_test_call_reported(
      &call,
      [](const void* context) {
        (*static_cast<const std::function<void()>*>(context))();
      },
      &body);
}

}  // namespace arctrace::testing

#else

void arctrace::testing::start_reported_functions() {}

#endif
