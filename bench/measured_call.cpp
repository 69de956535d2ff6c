// A function that does next to nothing, built three times under different names: without
// instrumentation, and with gcc's and clang's -finstrument-functions.
#include "bench/measured_call.hpp"

__attribute__((noinline)) long ARCTRACE_BENCH_CALL(long n) {
  asm volatile("" : "+r"(n));
  return n + 1;
}
