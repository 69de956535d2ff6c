// Conditions on calls: a call that fulfils one has the flight recorder take a snapshot
// when it ends. Only calls of functions that have conditions come here.
#pragma once

#include <cstdint>

#include "src/hook_abi/shim_types.h"
#include "src/stack/pending_calls.hpp"

namespace arctrace {

// `all`: `count` conditions, at most 64, which stay. To be called before there is a call
// that has one.
void set_call_conditions(const arctrace_shim_call_condition* all, uint32_t count);

// A call begins with this return slot whose time a condition may be about.
void conditional_call_begins(PendingCalls& calls, uintptr_t return_slot);

// The call ends, and its exit was recorded. `conditions`: one bit for each of its own.
// Requests a snapshot if the call fulfils one of them; that may be a system call.
void conditional_call_ends(uint64_t conditions, uintptr_t return_slot, uintptr_t retval);

}  // namespace arctrace
