/* A library that a program loads and unloads while it is joined. */
#include <sched.h>

int plugin_work(int number);
int plugin_work(int number) {
  const volatile int kept = number; /* makes space for a jump before the call */
  sched_yield();
  return kept + 1;
}
