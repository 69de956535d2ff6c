// The stacks on which a thread runs, as address ranges.
#pragma once

#include <cstdint>

#include "src/base/inlined.hpp"

namespace arctrace {

// Stack addresses [low, high). Empty if they are not known.
struct StackRange {
  uintptr_t low;
  uintptr_t high;
  bool contains(uintptr_t address) const { return address >= low && address < high; }
};

struct ThreadStacks {
  StackRange own;
  StackRange signal;     // sigaltstack's; it may lie inside the own stack
  bool is_signal_known;  // the thread has told it, or the kernel was asked

  enum class Which : uint8_t { kUnknown, kOwn, kSignal };

  // Whether the frame that ends at `address`, which is read only if the thread has a
  // signal stack, is on it. Most threads have none.
  bool is_on_signal_stack(const uintptr_t& address) const {
    return !is_zero(signal.high) && signal.contains(address - 1);
  }

  // Whether `address` is on the signal stack, with less than `room` bytes left below it.
  bool is_near_end_of_signal_stack(uintptr_t address, uintptr_t room) const {
    return is_on_signal_stack(address) && address - signal.low < room;
  }

  // The stack of the frame that ends at `address`, that is to say of what lies just below
  // it. A signal stack may be the innermost object of a frame, and what that frame calls
  // ends where the signal stack begins.
  Which which(uintptr_t address) const {
    if (signal.contains(address - 1)) return Which::kSignal;
    return own.contains(address - 1) ? Which::kOwn : Which::kUnknown;
  }
};

}  // namespace arctrace
