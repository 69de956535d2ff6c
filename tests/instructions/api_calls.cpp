// An event and a scope of the C++ API; see calls.c.
#include <arctrace/arctrace.hpp>
#include <cstdint>
#include <cstdlib>
#include <cstring>

namespace {

constexpr int kRounds = 201;
const volatile int last_round = kRounds - 1;

void mark(int round) {
  if (round == last_round) asm volatile("int3");
}

using Measured = arctrace::Event<"measured", arctrace::Field<"value", uint64_t>>;

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return EXIT_FAILURE;
  const bool is_event = std::strcmp(argv[1], "event") == 0;
  for (int i = 0; i < kRounds; ++i) {
    mark(i);
    if (is_event) {
      ARCTRACE_WRITE(Measured, uint64_t{1});
    } else {
      ARCTRACE_SCOPE("scope");
    }
    mark(i);
  }
  return EXIT_SUCCESS;
}
