// Stops a program at every instruction: the processor's trap flag raises SIGTRAP after
// each one, so that a handler can interrupt or kill the code under test exactly there.
// x86-64 only.
#pragma once

#include <cstdint>
#include <functional>

namespace arctrace::testing {

// Whether this machine has such a flag.
bool can_single_step();

// Runs `code` and calls `at_step(n)`, n from 0, in a signal handler after each of its
// instructions, until that returns false; then the rest runs undisturbed. Returns the
// number of steps.
uint64_t single_step(const std::function<void()>& code,
                     const std::function<bool(uint64_t)>& at_step);

}  // namespace arctrace::testing
