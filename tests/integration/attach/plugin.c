/* Loaded and unloaded by a program that is joined meanwhile. */
#include <sched.h>

int plugin_work(int number);
int plugin_work(int number) {
  sched_yield();
  return number + 1;
}
