// Writes the number of events that its argument gives. bench/run counts its system calls.
#include <arctrace/arctrace.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  const arctrace_field field = {"value", ARCTRACE_FIELD_U64};
  const uint32_t event = arctrace_define_event("number", 0, &field, 1);
  const uint64_t count = std::strtoull(argv[1], nullptr, 10);
  for (uint64_t i = 0; i < count; ++i) arctrace_write(event, &i, sizeof i);
  if (arctrace_lost(nullptr) == 0) return 0;
  std::fputs("event_writer: records were lost\n", stderr);
  return 1;
}
