// The hooks of functions that report their exits. Before a return, and at the entry of a
// function, nearly every register may hold a value, so these hooks save what they use,
// and so do the slow paths that they call.
#include "src/calls/reported_calls.hpp"

#include <arctrace/arctrace.h>

#include "src/api/shim_interface.h"
#include "src/calls/library_calls.hpp"
#include "src/process/gate.hpp"
#include "src/writer/record_filter.hpp"

using namespace arctrace;

namespace {

arctrace_shim_entry_hook* slow_entry = [](uintptr_t*) {};
arctrace_shim_return_hook* slow_return = [](uintptr_t*, uintptr_t) {};

// Functions with these hooks call them with any alignment of the stack.
ARCTRACE_KEEPS_REGISTERS __attribute__((noinline, force_align_arg_pointer)) void
enter_slowly(uintptr_t* return_slot) {
  slow_entry(return_slot);
}

ARCTRACE_KEEPS_REGISTERS __attribute__((noinline, force_align_arg_pointer)) void
exit_slowly(uintptr_t* return_slot, uintptr_t hook_site) {
  slow_return(return_slot, hook_site);
}

ARCTRACE_KEEPS_REGISTERS __attribute__((noinline, flatten)) bool enter_in_chain(
    uint64_t key, const uintptr_t* return_slot, ThreadState& state) {
  return enter_reported_fast(KnownSharedBlock{state}, key,
                             reinterpret_cast<uintptr_t>(return_slot),
                             [=]() ARCTRACE_INLINED { return return_slot; });
}

ARCTRACE_KEEPS_REGISTERS __attribute__((noinline, flatten)) bool exit_in_chain(
    const uintptr_t* return_slot, ThreadState& state) {
  return exit_reported_fast(KnownSharedBlock{state}, return_slot);
}

// Of the function into which it is inlined: found anew, so that no register is kept for
// it.
__attribute__((always_inline)) inline uintptr_t* entered_return_slot() {
  const auto* end = reinterpret_cast<const uintptr_t*>(frame_end());
  return reinterpret_cast<uintptr_t*>(address_anew(end - ARCTRACE_SHIM_ENTERED_CALL));
}

}  // namespace

void arctrace_shim_set_slow_returns(arctrace_shim_entry_hook* entry,
                                    arctrace_shim_return_hook* returns) {
  slow_entry = entry;
  slow_return = returns;
}

ARCTRACE_KEEPS_REGISTERS ARCTRACE_SHIM_NO_LANDING_PAD __attribute__((flatten)) void
arctrace_shim_function_entry(void) {
  // What the stub stored last.
  const EnteredKey key{reinterpret_cast<const uintptr_t*>(frame_end())};
  const OwnBlock room{[&](ThreadState& state) ARCTRACE_INLINED {
    return enter_in_chain(key, entered_return_slot(), state);
  }};
  const auto return_slot = []() ARCTRACE_INLINED {
    return static_cast<const uintptr_t*>(entered_return_slot());
  };
  if (__builtin_expect(is_open_for_all_functions() &&
                           enter_reported_fast(room, key, AtStackPointer{}, return_slot),
                       1)) {
    return;
  }
  enter_slowly(entered_return_slot());
}

ARCTRACE_KEEPS_REGISTERS __attribute__((flatten)) void arctrace_shim_function_return(
    void) {
  auto* return_slot = static_cast<uintptr_t*>(__builtin_dwarf_cfa());
  const OwnBlock room{[&](ThreadState& state)
                          ARCTRACE_INLINED { return exit_in_chain(return_slot, state); }};
  if (__builtin_expect(fast_path_is_open<ARCTRACE_GATE_FUNCTIONS>() &&
                           exit_reported_fast(room, return_slot),
                       1)) {
    return;
  }
  // Without a session, too, programs call this.
  if (!gate_is_open(ARCTRACE_GATE_FUNCTIONS)) return;
  exit_slowly(return_slot, reinterpret_cast<uintptr_t>(__builtin_return_address(0)));
}

void __return__(void) __attribute__((alias("arctrace_shim_function_return")));

int arctrace_shim_enter_reported(uint64_t frame_key, const uintptr_t* return_slot,
                                 uintptr_t frame_pointer, uint32_t flags) {
  const ThreadState* state = thread_local_state.state;
  if (state != nullptr && state->open.depth >= OpenFrames::kMax) {
    // Where the frame is would not be known at its exit.
    return call_began_slow(frame_key, return_slot, frame_pointer, flags);
  }
  if (is_recorded(ARCTRACE_GATE_FUNCTIONS)) {
    enter_stub_slow(frame_key,
                    {return_slot, frame_pointer, flags | ARCTRACE_SHIM_REPORTS_EXIT});
  }
  return 0;
}

int arctrace_shim_exit_reported(const uintptr_t* return_slot) {
  if (!is_recorded(ARCTRACE_GATE_FUNCTIONS)) return 1;
  return exit_reported_slow(reinterpret_cast<uintptr_t>(return_slot)) ? 1 : 0;
}
