/* Calls of an exit-hooked function: one with XRay's sleds (xray_calls.S), or one that
 * calls __return__ (returning_calls.S). PROBE_KIND says which. Both are in assembly,
 * because only some compilers make such functions. */
#include <arctrace/format.h>

#include "src/cost_probe/timed_loop.h"

void arctrace_cost_probe_hooked(void);
void arctrace_cost_probe_calls(void);

/* main calls it, which is hooked in the same way: without an open frame, calls may cost
 * more. */
void arctrace_cost_probe_calls(void) {
  PROBE_LOOP(PROBE_KIND, arctrace_cost_probe_hooked());
}
