// Stacks of our own for what needs more room than a thread's stack has
// (src/calls/room.hpp). Signals are blocked meanwhile, so that the program's
// handlers run on its own stacks.
#pragma once

namespace arctrace {

// Calls run(data) on a stack of ours, or on the present one if none can be had.
void run_on_roomy_stack(void (*run)(void* data), void* data);

// In a fork child: the stacks that other threads were on are free.
void free_roomy_stacks();

}  // namespace arctrace
