/* A program with a compiled-in hook: it is built with -finstrument-functions. */
#include <arctrace/format.h>

#include "src/cost_probe/timed_loop.h"

void arctrace_cost_probe_hooked(void);

__attribute__((noinline)) void arctrace_cost_probe_hooked(void) {
  __asm__ volatile("" ::: "memory");
}

/* The calls are made in an open frame, because they cost more without one. */
int main(void) {
  PROBE_LOOP(ARCTRACE_HOOK_FUNCTION, arctrace_cost_probe_hooked());
  return 0;
}
