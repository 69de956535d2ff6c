// Uses the C++ API as an outside program would; prints whether events are wanted.
#include <arctrace/arctrace.hpp>
#include <cstdint>
#include <cstdio>
#include <string_view>

namespace {

using Round = arctrace::Event<"round", arctrace::Field<"n", std::uint32_t>,
                              arctrace::Field<"where", std::string_view>>;

void outside(std::uint32_t n) {
  ARCTRACE_SCOPE("outside");
  ARCTRACE_WRITE(Round, n, "outside.cpp");
  ARCTRACE_COUNTER("rounds", n);
}

}  // namespace

int main() {
  for (std::uint32_t n = 0; n < 10; ++n) outside(n);
  ARCTRACE_TEXT("round %d", 10);
  std::printf("enabled %d lost %llu\n", arctrace_enabled(ARCTRACE_GATE_EVENTS) != 0,
              static_cast<unsigned long long>(arctrace_lost(nullptr)));
}
