// The machine frame of a function that was entered, as its hook saw it. Comparing two of
// them shows which frames were left without an exit, by longjmp or an exception.
//
// Functions that are inlined into one another share a machine frame: they have the same
// location and the same call site, but different hook sites. A call that reuses the stack
// space of a frame that was jumped out of shares only the location with that frame, or
// all three if it is the same call again.
#pragma once

#include <cstdint>

#include "src/hook_abi/shim_types.h"
#include "src/stack/thread_stacks.hpp"

namespace arctrace {

inline uint32_t low_half(uintptr_t address) { return static_cast<uint32_t>(address); }

// The halves of addresses serve only to tell equal from different.
struct MachineFrame {
  MachineFrame() = default;
  explicit MachineFrame(uintptr_t address) : location(address) {}
  explicit MachineFrame(const arctrace_shim_call& call)
      : location(call.location),
        call_site(low_half(call.call_site)),
        hook_site(low_half(call.hook_site)),
        stack_pointer(low_half(call.stack_pointer)),
        flags(call.flags) {}

  uintptr_t location = 0;  // canonical frame address; 0: not known
  uint32_t call_site = 0;  // the address that the frame returns to, low half
  uint32_t hook_site = 0;  // the address that the hook returns to, low half; 0: not known
  union {
    uint32_t stack_pointer = 0;  // at the hook's call, low half
    // Where its function's code ends, low half: of a frame that was found open
    // (ARCTRACE_SHIM_WAS_OPEN), which no hook has seen.
    uint32_t found_code_end;
  };
  uint32_t flags = 0;  // enum arctrace_shim_call_flags

  bool has(arctrace_shim_call_flags flag) const {
    return (flags & static_cast<uint32_t>(flag)) != 0;
  }
};

// Whether the frame `open` lies on a part of a stack that is free when a function is
// entered or left at `now`. Frames on other stacks (coroutines) can't be compared: false.
inline bool lies_below(const ThreadStacks& stacks, const MachineFrame& open,
                       const MachineFrame& now) {
  using Which = ThreadStacks::Which;
  const Which stack = stacks.which(now.location);
  if (stack == Which::kUnknown) return false;
  const Which open_stack = stacks.which(open.location);
  // A thread that is back on its own stack has left the signal stack.
  if (open_stack != stack) return stack == Which::kOwn && open_stack == Which::kSignal;
  if (open.location >= now.location) return false;
  if (!open.has(ARCTRACE_SHIM_LOCATION_GUESSED) &&
      !now.has(ARCTRACE_SHIM_LOCATION_GUESSED)) {
    return true;
  }
  // Guessed locations may differ within one machine frame.
  return now.call_site != 0 &&
         (open.call_site != now.call_site || open.hook_site == now.hook_site);
}

}  // namespace arctrace
