// The machine frame from which a hook was called.
#pragma once

#include <cstdint>

namespace arctrace::shim {

// A call of a hook, as the hook sees it at its first instruction.
struct HookCall {
  uintptr_t stack_pointer;  // the caller's
  uintptr_t frame_pointer;  // the caller's
  uintptr_t return_address;
};

struct FrameLocation {
  uintptr_t address;
  uint32_t flags;  // enum arctrace_shim_place_flags
};

// The location of the caller's machine frame: its canonical frame address, or where that
// can't be known the stack pointer, flagged as guessed. `function`: the one that the hook
// is called for. Some ns; the first time for a place some hundred.
FrameLocation locate_frame(uintptr_t function, const HookCall& call);

// Code was loaded or unloaded: what is known of hooks' places may be wrong.
void forget_frame_rules();

}  // namespace arctrace::shim
