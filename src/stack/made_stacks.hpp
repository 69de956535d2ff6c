// The stacks that the process has made for coroutines, as far as it has made them by
// functions that we see: makecontext, and make_fcontext of Boost.Context. Each has a
// number, by which reports name its coroutine. A stack that is used for another coroutine
// has another number from then on.
//
// The table is changed within outermost writer calls only, so that a change that a signal
// handler leaves by a jump is noticed with the call.
//
// The table is the process' and survives fork. A lookup that meets a change of it, or a
// change that meets another one, gives up: then a coroutine is noticed late, or not.
#pragma once

#include <cstdint>

#include "src/base/inlined.hpp"
#include "src/base/shared_atomics.hpp"

namespace arctrace {

// Changes with each change of the table, and is odd during one. 0: no stack was ever
// made.
extern __attribute__((visibility("hidden"))) uint32_t made_stacks_version;

inline bool has_made_stacks() {
  return __builtin_expect(!is_zero(made_stacks_version), 0);
}

struct MadeStack {
  enum class Found : uint8_t { kNo, kYes, kBusy };
  Found found;
  uint32_t number;  // of the coroutine
  uint32_t entry;   // in the table
  bool is_entered;  // enter_made_stack() was called for this number
  uintptr_t low, high;
  // A frame that ends in (from, to] is on the same stack, or on none like this one, as
  // long as the table has this version.
  uintptr_t from, to;
  uint32_t version;
};

// A part of a stack on which a thread is known to run, so that nothing has to be asked.
// All zero: none.
struct FollowedStack {
  uintptr_t from, to;
  uint32_t version;

  // Whether the frame that ends at `address` is there, and the table is still the same.
  bool has(uintptr_t address) const {
    return address > from && address <= to &&
           version == IpcAtomics::load_relaxed(made_stacks_version);
  }
};

// A coroutine has got the stack [low, high). Those that had any of it are over, but for
// one that has all of it and more.
void note_made_stack(uintptr_t low, uintptr_t high);

// The stack of the frame that ends at `address`, or the innermost one if that is within
// another coroutine's. Takes a binary search.
MadeStack find_made_stack(uintptr_t address);

// The stacks that lie within [low, high) are gone.
void forget_made_stacks(uintptr_t low, uintptr_t high);

// The coroutine that was found is over.
void forget_made_stack(const MadeStack& made);

// The number that was given last; 0: none was.
uint32_t last_made_stack();

// In a fork child: ends the change that another thread of the parent had under way when
// this one forked. Nothing is known of the table then, so that it is empty.
void end_change_of_parent();

// Ends the change that this thread had under way, likewise: a signal handler jumped out
// of it.
void abandon_stack_change();

struct PendingCalls;

struct EnteredStack {
  uint32_t number;       // 0: it is gone, or the table was busy
  PendingCalls* before;  // of the thread that followed it before; null: none did
};

// The thread that has `calls` begins to follow the coroutine of a stack that was found.
// It does so under a new number if another thread, or this one, has followed it before
// and does not know its frames any more.
EnteredStack enter_made_stack(const MadeStack& made, PendingCalls* calls);

}  // namespace arctrace
