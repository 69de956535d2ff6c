// The choice of the clock and its syncs with the clocks of the system.
#include "src/recorder/buffer/clock_source.hpp"

#include <doctest/doctest.h>
#include <time.h>

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <vector>

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
       {uint32_t{recorder::choose_clock()}, uint32_t{ARCTRACE_CLOCK_MONOTONIC}}) {
    for (int i = 0; i < 100; ++i) {
      const uint64_t ticks = read_ticks(clock);
      const uint64_t monotonic = now_ns(CLOCK_MONOTONIC);
      const recorder::ClockSync sync = recorder::take_clock_sync(clock);
      CHECK(sync.monotonic_ns >= monotonic);
      CHECK(sync.monotonic_ns <= now_ns(CLOCK_MONOTONIC));
      CHECK(sync.ticks >= ticks);
      CHECK(sync.ticks <= read_ticks(clock));
    }
  }
}

TEST_CASE("clock source: the monotonic clock's ticks are nanoseconds") {
  CHECK(recorder::measure_ticks_per_second(ARCTRACE_CLOCK_MONOTONIC) == 1000000000u);
  const recorder::ClockSync sync = recorder::take_clock_sync(ARCTRACE_CLOCK_MONOTONIC);
  CHECK(sync.ticks == sync.monotonic_ns);
}

// By how much real time is ahead of the monotonic clock, from the closest pair of
// monotonic readings around one of real time.
struct RealTimeOffset {
  int64_t ns = 0;
  uint64_t width_ns = UINT64_MAX;
};

RealTimeOffset read_real_time_offset() {
  RealTimeOffset best;
  for (int i = 0; i < 20; ++i) {
    const uint64_t before = now_ns(CLOCK_MONOTONIC);
    const uint64_t real = now_ns(CLOCK_REALTIME);
    const uint64_t width = now_ns(CLOCK_MONOTONIC) - before;
    if (width < best.width_ns) {
      best = {static_cast<int64_t>(real - before - width / 2), width};
    }
  }
  return best;
}

TEST_CASE("clock source: real time is the moment's, not that of the reading after it") {
  // A sync takes some 80 readings, and may be wrong by a part of the three around real
  // time. The median is compared, because preemptions and changes of the clock affect
  // fewer than half.
  std::vector<uint64_t> errors_ns;
  uint64_t width_ns = UINT64_MAX;
  for (int i = 0; i < 101; ++i) {
    const RealTimeOffset before = read_real_time_offset();
    const recorder::ClockSync sync = recorder::take_clock_sync(recorder::choose_clock());
    const RealTimeOffset after = read_real_time_offset();
    const auto offset = static_cast<int64_t>(sync.realtime_ns - sync.monotonic_ns);
    // The clock may be slewed between the readings.
    const int64_t least = std::min(before.ns, after.ns);
    const int64_t most = std::max(before.ns, after.ns);
    errors_ns.push_back(
        static_cast<uint64_t>(std::max({least - offset, offset - most, int64_t{0}})));
    width_ns = std::min({width_ns, before.width_ns, after.width_ns});
  }
  const auto median = errors_ns.begin() + 50;
  std::nth_element(errors_ns.begin(), median, errors_ns.end());
  CAPTURE(width_ns);
  // The next reading is some 40 times that away.
  CHECK(*median <= 10 * width_ns);
}

TEST_CASE("clock source: the rate agrees with two syncs") {
  const uint32_t clock = recorder::choose_clock();
  const recorder::ClockSync first = recorder::take_clock_sync(clock);
  const auto rate = static_cast<double>(recorder::measure_ticks_per_second(clock));
  const recorder::ClockSync second = recorder::take_clock_sync(clock);
  const double expected = static_cast<double>(second.ticks - first.ticks) * 1e9 /
                          static_cast<double>(second.monotonic_ns - first.monotonic_ns);
  CHECK(rate > expected * 0.9);
  CHECK(rate < expected * 1.1);
}

TEST_CASE("clock source: a moment of this boot, and of others") {
  constexpr uint64_t kSecond = 1000000000u;
  for (const uint32_t clock :
       {uint32_t{recorder::choose_clock()}, uint32_t{ARCTRACE_CLOCK_MONOTONIC}}) {
    const uint64_t rate = recorder::measure_ticks_per_second(clock);
    const recorder::ClockSync then = recorder::take_clock_sync(clock);
    CHECK(recorder::is_of_this_boot(then, clock, rate));
    recorder::ClockSync other = then;
    other.realtime_ns -= 10 * kSecond;  // a machine that was booted earlier has this
    CHECK_FALSE(recorder::is_of_this_boot(other, clock, rate));
    other = then;
    other.ticks -= rate / 10;  // a counter that began at another value has this
    CHECK_FALSE(recorder::is_of_this_boot(other, clock, rate));
    other = then;
    other.monotonic_ns += 1000 * kSecond;
    other.realtime_ns += 1000 * kSecond;
    CHECK_FALSE(recorder::is_of_this_boot(other, clock, rate));
    CHECK_FALSE(recorder::is_of_this_boot(then, 99, rate));
  }
}

}  // namespace
}  // namespace arctrace
