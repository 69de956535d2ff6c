/* Uses the API as a C program would; prints whether events are wanted. */
#include <arctrace/arctrace.h>
#include <stdio.h>
#include <string.h>

int main(void) {
  const struct arctrace_field fields[] = {{"n", ARCTRACE_FIELD_U32}};
  uint32_t name = arctrace_define_name("outside");
  uint32_t event = arctrace_define_event("round", 0, fields, 1);
  for (uint32_t n = 0; n < 10; ++n) {
    arctrace_enter(arctrace_name_key(name));
    void* payload = arctrace_reserve(event, sizeof n);
    if (payload != NULL) {
      memcpy(payload, &n, sizeof n);
      arctrace_commit(payload);
    }
    arctrace_counter(name, n);
    arctrace_exit(arctrace_name_key(name));
  }
  arctrace_text("round %d", 10);
  printf("enabled %d lost %llu\n", arctrace_enabled(ARCTRACE_GATE_EVENTS) != 0,
         (unsigned long long)arctrace_lost(NULL));
  return 0;
}
