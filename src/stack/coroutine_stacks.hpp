// The coroutine stacks of the process: those that it makes by functions that the shim
// hooks, makecontext, and make_fcontext of Boost.Context. Each has a number, by which
// reports name its coroutine. A stack that is used for another coroutine has another
// number from then on.
//
// The table is changed within outermost writer calls only, so that a change that a signal
// handler's jump abandons is noticed with the call.
//
// The table is the process' and survives fork. A lookup during a change, or a change
// during another one, gives up: then a coroutine is noticed late, or not.
#pragma once

#include <cstdint>

#include "src/stack/call_edges.hpp"

namespace arctrace::writer {

struct CoroutineStack {
  enum class Found : uint8_t { kNo, kYes, kBusy };
  Found found;
  uint32_t number;  // of the coroutine
  uint32_t entry;   // in the table
  bool is_entered;  // enter_coroutine_stack() was called for this number
  uintptr_t low, high;
  // The bounds within which a frame that ends in (from, to] is on the same stack, or on
  // no such stack like this one, as long as the table has this version.
  uintptr_t from, to;
  uint32_t version;
};

// Notes that a coroutine has got the stack [low, high). Stacks that overlap it are over,
// except those around it.
void note_coroutine_stack(uintptr_t low, uintptr_t high);

// The coroutine stack of the frame that ends at `address`; if that is within several, the
// innermost one. Takes a binary search.
CoroutineStack find_coroutine_stack(uintptr_t address);

// Forgets the stacks that lie within [low, high).
void forget_coroutine_stacks(uintptr_t low, uintptr_t high);

// Forgets the stack of the coroutine that was found: it is over.
void forget_coroutine_stack(const CoroutineStack& stack);

// The number that was given last; 0: none was.
uint32_t last_coroutine_stack();

// To be called in a fork child: ends the change that another thread of the parent was
// making when this one forked. Nothing is known of the table any more, so it becomes
// empty.
void end_change_of_parent();

// Ends the change that this thread was making, in the same way: a signal handler jumped
// out of it.
void abandon_stack_change();

struct PendingCalls;

struct EnteredStack {
  uint32_t number;       // 0: it is gone, or the table was busy
  PendingCalls* before;  // of the thread whose current stack it was before; null: none's
};

// The thread that has `calls` now runs on the coroutine stack that was found. It gets a
// new number if another thread, or this one, has run on it before and does not know its
// frames any more.
EnteredStack enter_coroutine_stack(const CoroutineStack& stack, PendingCalls* calls);

}  // namespace arctrace::writer
