// The calls by which programs make stacks for coroutines and go on on other stacks:
// makecontext, swapcontext and setcontext, and the fcontext functions of Boost.Context.
#pragma once

#include <cstdint>

namespace arctrace::shim {

// Reports to the writer what a call of `name` is about to do, which is of kind kStacks,
// kLastSwitch or kSilentStacks.
void record_stack_call(const char* name, const uintptr_t* return_slot);

}  // namespace arctrace::shim
