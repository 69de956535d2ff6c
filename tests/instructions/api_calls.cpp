// Writes records by the API; see calls.c.
#include <arctrace/arctrace.hpp>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string_view>

namespace {

constexpr int kRounds = 201;
const volatile int last_round = kRounds - 1;

void mark(int round) {
  if (round == last_round) asm volatile("int3");
}

// An event whose payload is filled in place.
void write_in_place(uint32_t event, uint64_t value) {
  void* const payload = arctrace_reserve(event, sizeof value);
  if (payload == nullptr) return;
  std::memcpy(payload, &value, sizeof value);
  arctrace_commit(payload);
}

using Measured = arctrace::Event<"measured", arctrace::Field<"value", uint64_t>>;

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return EXIT_FAILURE;
  const std::string_view what = argv[1];
  const arctrace_field field = {"value", ARCTRACE_FIELD_U64};
  const uint32_t event = arctrace_define_event("reserved", 0, &field, 1);
  const uint32_t name = arctrace_define_name("name");
  for (int i = 0; i < kRounds; ++i) {
    mark(i);
    if (what == "event") {
      ARCTRACE_WRITE(Measured, uint64_t{1});
    } else if (what == "reserve") {
      write_in_place(event, 1);
    } else if (what == "instant") {
      arctrace_instant(name);
    } else if (what == "counter") {
      arctrace_counter(name, 1);
    } else {
      ARCTRACE_SCOPE("scope");
    }
    mark(i);
  }
  return EXIT_SUCCESS;
}
