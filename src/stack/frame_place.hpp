// Where a function-entry hook was called from, and what that says about frames that were
// left without an exit, by longjmp or an exception.
//
// Functions inlined into one another share a machine frame: the same location, the same
// return address, but each its own place in the code where its hook is called. A call
// that takes the place of one that was jumped out of shares the location only, or if it
// is the same call again, all three.
#pragma once

#include <cstdint>

#include "src/hook_abi/shim_types.h"

namespace arctrace {

// Stack addresses [low, high); empty: not known.
struct StackRange {
  uintptr_t low;
  uintptr_t high;
  bool contains(uintptr_t address) const { return address >= low && address < high; }
};

// The stacks of one thread.
struct ThreadStacks {
  StackRange own;
  StackRange signal;  // sigaltstack; may lie inside the own one

  enum class Which : uint8_t { kUnknown, kOwn, kSignal };
  // Of what lies just below `address`: the frame that ends there. A signal stack may be
  // the innermost object of a frame, and what that calls ends where it begins.
  Which which(uintptr_t address) const {
    if (signal.contains(address - 1)) return Which::kSignal;
    return own.contains(address - 1) ? Which::kOwn : Which::kUnknown;
  }
};

inline uint32_t low_half(uintptr_t address) { return static_cast<uint32_t>(address); }

// The halves of addresses serve only to tell equal from different.
struct FramePlace {
  FramePlace() = default;
  explicit FramePlace(uintptr_t address) : location(address) {}
  explicit FramePlace(const arctrace_shim_call& call)
      : location(call.location),
        stack_pointer(low_half(call.stack_pointer)),
        call_site(low_half(call.call_site)),
        hook_site(low_half(call.hook_site)),
        flags(call.flags & kFlags) {}

  uintptr_t location = 0;      // of the machine frame; 0: not known
  uint32_t stack_pointer = 0;  // at the hook's call, low half
  uint32_t call_site = 0;      // what the machine frame returns to, low half
  uint32_t hook_site = 0;      // what the hook returns to, low half; 0: not known
  uint32_t flags = 0;          // enum arctrace_shim_call_flags; above, the parent

  bool has(arctrace_shim_call_flags flag) const {
    return (flags & static_cast<uint32_t>(flag)) != 0;
  }
  // By which the frames inside this one remember it.
  uint32_t fingerprint() const {
    return (low_half(location) * 0x9E3779B1u ^ hook_site) & ~kFlags;
  }
  void set_parent(uint32_t its_fingerprint) {
    flags = (flags & kFlags) | its_fingerprint;
  }
  bool has_parent(uint32_t its_fingerprint) const {
    return (flags & ~kFlags) == its_fingerprint;
  }

 private:
  static constexpr uint32_t kFlags = 15;
};

// Whether a frame at `open` lies on a part of a stack that is free when a function is
// entered at, or left from, `now`. Other stacks (coroutines) can't be compared.
inline bool lies_below(const ThreadStacks& stacks, const FramePlace& open,
                       const FramePlace& now) {
  using Which = ThreadStacks::Which;
  const Which stack = stacks.which(now.location);
  if (stack == Which::kUnknown) return false;
  const Which open_stack = stacks.which(open.location);
  // Whoever is back on the thread's own stack has left the signal stack.
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
