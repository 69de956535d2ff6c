/* A program with a compiled-in hook: it is built with -finstrument-functions. */
#include <arctrace/format.h>

#include "src/cost_probe/timed_loop.h"

void arctrace_cost_probe_hooked(void);

__attribute__((noinline)) void arctrace_cost_probe_hooked(void) {
  __asm__ volatile("" ::: "memory");
}

/* An open frame, in which the calls are: without one they cost more. */
int main(void) {
  PROBE_LOOP(ARCTRACE_HOOK_FUNCTION, arctrace_cost_probe_hooked());
  return 0;
}
