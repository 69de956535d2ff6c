/* Three calls of a scope, with a text in each: a program that writes a trace.
 *   cc serve.c -o serve $(pkg-config --cflags --libs arctrace) */
#include <arctrace/arctrace.h>

int main(void) {
  uint64_t serve = arctrace_name_key(arctrace_define_name("serve"));
  for (int i = 0; i < 3; ++i) {
    arctrace_enter(serve);
    arctrace_text("request %d", i);
    arctrace_exit(serve);
  }
  return 0;
}
