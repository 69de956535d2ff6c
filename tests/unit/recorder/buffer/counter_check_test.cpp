// Counters that differ between CPUs are detected.
#include <doctest/doctest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "src/recorder/buffer/clock_source.hpp"

namespace arctrace::testing {
namespace {

// A machine whose CPUs' counters run at 2.6 ticks a nanosecond.
struct Machine {
  int64_t ahead_ticks = 0;  // the lead of CPU 1
  uint64_t width = 60;
  int interrupted = 0;  // how many samples are much too wide
  uint64_t now_ns = 1'000'000'000;

  std::optional<recorder::CounterSample> sample(size_t cpu) {
    if (cpu == 9) return std::nullopt;
    now_ns += 50'000;
    const uint64_t ticks =
        now_ns * 26 / 10 + static_cast<uint64_t>(cpu == 1 ? ahead_ticks : 0);
    if (interrupted == 0) return recorder::CounterSample{ticks, width, now_ns};
    --interrupted;
    return recorder::CounterSample{ticks + 5'000'000, 10'000'000, now_ns};
  }
};

bool agree(Machine machine) {
  constexpr std::array<size_t, 3> kCpus = {0, 1, 2};
  return recorder::counters_agree(kCpus, [&](size_t cpu) { return machine.sample(cpu); });
}

TEST_CASE("counters: equal ones agree, whatever their rate is") {
  CHECK(agree({}));
  CHECK(recorder::counters_agree(
      {}, [](size_t) { return std::optional<recorder::CounterSample>(); }));
}

TEST_CASE("counters: one that is ahead or behind is noticed") {
  for (const int64_t ticks : {100, -100, 1'000'000, -1'000'000}) {
    CAPTURE(ticks);
    CHECK_FALSE(agree({.ahead_ticks = ticks}));
  }
  CHECK(agree({.ahead_ticks = 40}));
}

TEST_CASE("counters: samples that are too wide prove nothing, and are taken again") {
  CHECK_FALSE(agree({.width = 2000}));
  CHECK(agree({.interrupted = 4}));
  CHECK_FALSE(agree({.interrupted = 1000}));
}

TEST_CASE("counters: a CPU that cannot be reached is not taken for one that agrees") {
  Machine machine;
  constexpr std::array<size_t, 2> kCpus = {0, 9};
  CHECK_FALSE(
      recorder::counters_agree(kCpus, [&](size_t cpu) { return machine.sample(cpu); }));
}

}  // namespace
}  // namespace arctrace::testing
