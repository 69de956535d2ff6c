#include "tests/support/lock_call.hpp"

#include <arctrace/format.h>

#include <cstdlib>

#include "src/api/shim_interface.h"
#include "tests/support/filter_flags.hpp"

namespace arctrace::testing {
namespace {

constexpr uintptr_t kReturnAddress = 0x1234567;

// The element's index is the number of locks.
constinit arctrace_shim_call_args lock_args[ARCTRACE_LOCK_WORDS_MAX + 1]{};

}  // namespace

void start_lock_calls() {
  for (uint32_t i = 0; i <= ARCTRACE_LOCK_WORDS_MAX; ++i) lock_args[i].locks = i;
  arctrace_shim_set_call_args(lock_args);
}

__attribute__((noinline)) void call_with_locks(uint64_t key, uint32_t locks,
                                               const std::function<void()>& body) {
  constexpr size_t kSlot = 16;
  uintptr_t stack[kSlot + 1] = {};
  uintptr_t* const slot = stack + kSlot;
  *slot = kReturnAddress;
  uintptr_t arguments[ARCTRACE_SHIM_ARGUMENTS_MAX] = {};
  for (uint32_t i = 0; i < locks; ++i) {
    arguments[i] = lock_of(key, i + 1);
    slot[ARCTRACE_SHIM_STUB_ARGUMENT(static_cast<ptrdiff_t>(i))] = arguments[i];
  }
  const arctrace_shim_stub_call call = {0, key, ARCTRACE_SHIM_READY_WITH_LOCKS(0, locks),
                                        static_cast<uint16_t>(filter_flags(key)), 0};
  const int begun = arctrace_shim_stub_begin(&call, slot);
  const bool is_pending = begun == ARCTRACE_SHIM_BEGUN ||
                          (begun == ARCTRACE_SHIM_NOT_BEGUN &&
                           arctrace_shim_call_begin_with_args(key, slot, 0, call.filter,
                                                              locks, arguments) != 0);
  body();
  if (is_pending) arctrace_shim_call_end(slot, 0);
  if (*slot != kReturnAddress) std::abort();  // the call would return to another address
}

}  // namespace arctrace::testing
