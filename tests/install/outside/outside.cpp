// Uses the C++ API as an outside program would; prints whether events are wanted.
#include <arctrace/arctrace.h>

#include <cstdio>

int main() {
  const auto name = arctrace_define_name("outside");
  for (int n = 0; n < 10; ++n) {
    arctrace_enter(arctrace_name_key(name));
    arctrace_instant(name);
    arctrace_exit(arctrace_name_key(name));
  }
  std::printf("enabled %d lost %llu\n", arctrace_enabled(ARCTRACE_GATE_EVENTS) != 0,
              static_cast<unsigned long long>(arctrace_lost(nullptr)));
}
