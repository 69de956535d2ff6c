// The seed of all random choices of a test.
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <random>

namespace arctrace::testing {

// Returns ARCTRACE_TEST_SEED, which tools/run-tests sets for a whole run, else a new
// seed, which is printed once.
inline uint64_t test_seed() {
  static const uint64_t seed = [] {
    const char* given = std::getenv("ARCTRACE_TEST_SEED");
    const uint64_t value =
        given != nullptr ? std::strtoull(given, nullptr, 0) : std::random_device{}();
    std::printf("ARCTRACE_TEST_SEED=%llu\n", static_cast<unsigned long long>(value));
    std::fflush(stdout);
    return value;
  }();
  return seed;
}

}  // namespace arctrace::testing
