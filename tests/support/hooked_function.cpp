#include "tests/support/hooked_function.hpp"

#include "src/api/shim_interface.h"
#include "tests/support/filter_flags.hpp"

namespace arctrace::testing {
namespace {

constexpr uintptr_t kFrameSize = 16;  // from the frame pointer to the CFA

uint64_t slow_calls;

void enter_slowly(uintptr_t function, uintptr_t call_site, uintptr_t stack_pointer,
                  uintptr_t frame_pointer, uintptr_t hook_site) {
  ++slow_calls;
  const arctrace_shim_call call = {
      stack_pointer + kFrameSize,
      stack_pointer,
      frame_pointer,
      hook_site,
      call_site,
      filter_flags(function) | ARCTRACE_SHIM_BEGINS_FRAME | ARCTRACE_SHIM_CFA_BY_SP};
  arctrace_shim_enter(function, &call);
}

void exit_slowly(uintptr_t function, uintptr_t, uintptr_t stack_pointer, uintptr_t,
                 uintptr_t) {
  ++slow_calls;
  if (arctrace_shim_exit(function, stack_pointer) == 0) {
    arctrace_shim_exit_at(function, stack_pointer + kFrameSize, stack_pointer);
  }
}

}  // namespace

void start_hooked_functions() { arctrace_shim_set_slow_hooks(enter_slowly, exit_slowly); }

__attribute__((noinline)) void call_hooked(uint64_t key, uint32_t site,
                                           const std::function<void()>& body) {
  const auto stack_pointer = reinterpret_cast<uintptr_t>(__builtin_frame_address(0));
  const auto call_site = reinterpret_cast<uintptr_t>(__builtin_return_address(0));
  arctrace_shim_function_enter(key, call_site, stack_pointer, stack_pointer, site);
  body();
  arctrace_shim_function_exit(key, call_site, stack_pointer, stack_pointer, site);
}

void call_hooked(uint64_t key, uint32_t site) {
  call_hooked(key, site, [] {});
}

uint64_t slow_hook_calls() { return slow_calls; }

}  // namespace arctrace::testing
