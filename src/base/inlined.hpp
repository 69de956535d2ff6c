// Marks the lambdas that the fast path is put together from.
#pragma once

// After a lambda's parameters: it is inlined before the compiler decides which variables
// stay in registers. Otherwise those that it captures are kept in memory.
#define ARCTRACE_INLINED __attribute__((always_inline))
