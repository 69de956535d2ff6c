// The stacks that the process has made for coroutines, as far as it has made them by
// functions that we see: makecontext, and make_fcontext of Boost.Context. Each has a
// number, by which reports name its coroutine. A stack that is used for another coroutine
// has another number from then on.
//
// The table is the process' and survives fork. A lookup that meets a change of it, or a
// change that meets another one, gives up: then a coroutine is noticed late, or not.
#pragma once

#include <cstdint>

#include "src/base/shared_atomics.hpp"

namespace arctrace {

// How many stacks have been made; at its end it stays where it is.
extern uint32_t made_stacks;

inline bool has_made_stacks() {
  return __builtin_expect(IpcAtomics::load_relaxed(made_stacks) != 0, 0);
}

struct MadeStack {
  enum class Found : uint8_t { kNo, kYes, kBusy };
  Found found;
  uint32_t number;  // of the coroutine
  bool is_entered;  // enter_made_stack() was called for this number
  uintptr_t low;
};

// A coroutine has got the stack [low, high). Those that had any of it are over.
void note_made_stack(uintptr_t low, uintptr_t high);

// The stack of the frame that ends at `address`, or the innermost one if that is within
// another coroutine's.
MadeStack find_made_stack(uintptr_t address);

// The stacks that lie within [low, high) are gone.
void forget_made_stacks(uintptr_t low, uintptr_t high);

// A thread begins to follow the coroutine of the stack that begins at `low`. Returns the
// number under which it does so: a new one if another thread, or this one, has followed
// it before and does not know its frames any more. 0: the table was busy.
uint32_t enter_made_stack(uintptr_t low);

}  // namespace arctrace
