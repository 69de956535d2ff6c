// The choice of the clock and its syncs with the clocks of the system.
#include "src/recorder/buffer/clock_source.hpp"

#include <doctest/doctest.h>
#include <time.h>

#include <initializer_list>

#include "src/buffer/clock.hpp"

namespace arctrace {
namespace {

uint64_t now_ns(clockid_t clock) {
  timespec now{};
  clock_gettime(clock, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1000000000u +
         static_cast<uint64_t>(now.tv_nsec);
}

TEST_CASE("clock source: a sync lies between what each clock shows before and after") {
  for (const uint32_t clock :
       {uint32_t{choose_clock()}, uint32_t{ARCTRACE_CLOCK_MONOTONIC}}) {
    for (int i = 0; i < 100; ++i) {
      const uint64_t ticks = read_ticks(clock);
      const uint64_t monotonic = now_ns(CLOCK_MONOTONIC);
      const ClockSync sync = take_clock_sync(clock);
      CHECK(sync.monotonic_ns >= monotonic);
      CHECK(sync.monotonic_ns <= now_ns(CLOCK_MONOTONIC));
      CHECK(sync.ticks >= ticks);
      CHECK(sync.ticks <= read_ticks(clock));
    }
  }
}

TEST_CASE("clock source: the monotonic clock's ticks are nanoseconds") {
  CHECK(measure_ticks_per_second(ARCTRACE_CLOCK_MONOTONIC) == 1000000000u);
  const ClockSync sync = take_clock_sync(ARCTRACE_CLOCK_MONOTONIC);
  CHECK(sync.ticks == sync.monotonic_ns);
}

TEST_CASE("clock source: real time is the moment's, not that of the reading after it") {
  // Both clocks run alike, so their difference is the same in every sync.
  const ClockSync first = take_clock_sync(choose_clock());
  for (int i = 0; i < 50; ++i) {
    const ClockSync sync = take_clock_sync(choose_clock());
    const auto elapsed = static_cast<double>(sync.monotonic_ns - first.monotonic_ns);
    const auto real = static_cast<double>(sync.realtime_ns - first.realtime_ns);
    CHECK(real - elapsed < 1e6 + elapsed / 100);
    CHECK(elapsed - real < 1e6 + elapsed / 100);
  }
}

TEST_CASE("clock source: the rate agrees with two syncs") {
  const uint32_t clock = choose_clock();
  const ClockSync first = take_clock_sync(clock);
  const auto rate = static_cast<double>(measure_ticks_per_second(clock));
  const ClockSync second = take_clock_sync(clock);
  const double expected = static_cast<double>(second.ticks - first.ticks) * 1e9 /
                          static_cast<double>(second.monotonic_ns - first.monotonic_ns);
  CHECK(rate > expected * 0.9);
  CHECK(rate < expected * 1.1);
}

TEST_CASE("clock source: a moment of this boot, and of others") {
  constexpr uint64_t kSecond = 1000000000u;
  for (const uint32_t clock :
       {uint32_t{choose_clock()}, uint32_t{ARCTRACE_CLOCK_MONOTONIC}}) {
    const uint64_t rate = measure_ticks_per_second(clock);
    const ClockSync then = take_clock_sync(clock);
    CHECK(is_of_this_boot(then, clock, rate));
    ClockSync other = then;
    other.realtime_ns -= 10 * kSecond;  // a machine that was booted earlier
    CHECK_FALSE(is_of_this_boot(other, clock, rate));
    other = then;
    other.ticks -= rate / 10;  // one whose counter began elsewhere
    CHECK_FALSE(is_of_this_boot(other, clock, rate));
    other = then;
    other.monotonic_ns += 1000 * kSecond;
    other.realtime_ns += 1000 * kSecond;
    CHECK_FALSE(is_of_this_boot(other, clock, rate));
    CHECK_FALSE(is_of_this_boot(then, 99, rate));
  }
}

}  // namespace
}  // namespace arctrace
