/* Loaded and unloaded by a program that is joined meanwhile. */
#include <sched.h>

int plugin_work(int number);
int plugin_work(int number) {
  const volatile int kept = number; /* before the call there is room for a jump */
  sched_yield();
  return kept + 1;
}
