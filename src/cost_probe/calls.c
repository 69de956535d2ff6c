/* A program without hooks of its own: calls of a library function, of a function that -P
 * can patch, and of a scope of the API, if the program is recorded. */
#include <arctrace/arctrace.h>
#include <dlfcn.h>
#include <stdlib.h>

#include "src/cost_probe/timed_loop.h"

void arctrace_cost_probe_patched(void);

typedef void Scope(uint64_t frame_key);

/* The function is long enough for a jump. */
__attribute__((noinline)) void arctrace_cost_probe_patched(void) {
  __asm__ volatile("nop\n nop\n nop\n nop\n nop\n nop\n nop\n nop" ::: "memory");
}

static void call_scopes(void) {
  uint32_t (*const define)(const char*) =
      __extension__(uint32_t(*)(const char*)) dlsym(RTLD_DEFAULT, "arctrace_define_name");
  Scope* const enter = __extension__(Scope*) dlsym(RTLD_DEFAULT, "arctrace_enter");
  Scope* const leave = __extension__(Scope*) dlsym(RTLD_DEFAULT, "arctrace_exit");
  if (define == NULL || enter == NULL || leave == NULL) return;
  const uint64_t key = arctrace_name_key(define("scope"));
  PROBE_LOOP(ARCTRACE_HOOK_API, enter(key); leave(key));
}

int main(void) {
  volatile long number = 1;
  PROBE_LOOP(ARCTRACE_HOOK_LIBRARY_CALL, number = labs(number));
  PROBE_LOOP(ARCTRACE_HOOK_PATCHED, arctrace_cost_probe_patched());
  call_scopes();
  return 0;
}
