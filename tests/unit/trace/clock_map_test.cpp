// Converting ticks to times in ns: by a fixed rate, and by clock syncs.
#include <absl/numeric/int128.h>
#include <doctest/doctest.h>

#include <cstdint>
#include <cstdlib>
#include <limits>
#include <random>
#include <vector>

#include "reader/trace/session.hpp"

namespace arctrace::reader {
namespace {

// floor((ticks - t0) * ns / span), by a 128-bit division.
int64_t line(uint64_t ticks, uint64_t t0, uint64_t ns, uint64_t span) {
  const absl::int128 distance = absl::int128(ticks) - absl::int128(t0);
  const absl::int128 product = distance * absl::int128(ns);
  absl::int128 quotient = product / absl::int128(span);
  if (quotient * absl::int128(span) > product) quotient -= 1;
  return static_cast<int64_t>(quotient);
}

TEST_CASE("without syncs the header's rate holds, on both sides of the start") {
  const ClockMap clock({1000, 50, 0}, 2'500'000'000);
  CHECK(clock.to_ns(1000) == 0);
  CHECK(clock.to_ns(1005) == 2);
  CHECK(clock.to_ns(1004) == 1);  // 1.6
  CHECK(clock.to_ns(999) == -1);  // -0.4
  CHECK(clock.to_ns(995) == -2);  // -2.0
  CHECK(clock.to_ns(1000 + 2'500'000'000u) == 1'000'000'000);
}

TEST_CASE("a rate of 0 counts as ns") {
  CHECK(ClockMap({7, 7, 7}, 0).to_ns(1007) == 1000);
}

TEST_CASE("each segment is the line through its syncs; the ends go on") {
  ClockMap clock({1000, 1'000'000, 0}, 1'000'000'000);
  const std::vector<ClockSync> syncs = {
      {2000, 1'000'500, 0},  // 0.5 ns a tick
      {3000, 1'003'500, 0},  // 3 ns a tick
      {3007, 1'003'501, 0},  // 1/7
  };
  CHECK(clock.set_syncs(syncs) == 0);
  CHECK(clock.to_ns(0) == -500);
  CHECK(clock.to_ns(1000) == 0);
  CHECK(clock.to_ns(1999) == 499);
  CHECK(clock.to_ns(2000) == 500);
  CHECK(clock.to_ns(2001) == 503);
  CHECK(clock.to_ns(3000) == 3500);
  CHECK(clock.to_ns(3006) == 3500);
  CHECK(clock.to_ns(3007) == 3501);
  CHECK(clock.to_ns(3014) == 3502);
  CHECK(clock.to_ns(1500) == 250);  // an earlier tick again
}

TEST_CASE("syncs that do not rise are skipped") {
  ClockMap clock({1000, 1000, 0}, 1);
  CHECK(clock.set_syncs(std::vector<ClockSync>{{500, 400, 0},
                                               {1000, 1000, 0},
                                               {2000, 900, 0},
                                               {2000, 3000, 0},
                                               {2000, 4000, 0}}) == 3);
  CHECK(clock.to_ns(1500) == 1000);
}

TEST_CASE("one sync is not enough for a rate") {
  ClockMap clock({1000, 0, 0}, 1'000'000'000);
  CHECK(clock.set_syncs(std::vector<ClockSync>{{1010, 11, 0}}) == 0);
  CHECK(clock.to_ns(2000) == 1000);
  CHECK(clock.set_syncs(std::vector<ClockSync>{{1010, 11, 0}, {900, 5, 0}}) == 1);
  CHECK(clock.to_ns(2000) == 1000);
}

TEST_CASE("exact for any ticks: against a division of 128 bits") {
  const uint64_t seed = std::random_device()();
  CAPTURE(seed);
  std::mt19937_64 random(seed);
  for (int round = 0; round < 2000; ++round) {
    const uint64_t t0 = random() >> (random() % 40 + 2);
    const uint64_t span = (random() >> (random() % 60 + 3)) + 1;
    const uint64_t ns = random() >> (random() % 60 + 4);
    ClockMap clock({t0, 0, 0}, 1);
    const ClockSync start{t0, 0, 0};
    REQUIRE(clock.set_syncs(std::vector<ClockSync>{start, {t0 + span, ns, 0}}) == 0);
    CHECK(clock.to_ns(t0 + span) == static_cast<int64_t>(ns));
    for (int i = 0; i < 10; ++i) {
      const uint64_t ticks = t0 + random() % (span + 1);
      CHECK(clock.to_ns(ticks) == line(ticks, t0, ns, span));
    }
  }
}

TEST_CASE("times never run backwards as ticks go on, and saturate at the ends") {
  ClockMap clock({100, 0, 0}, 1);
  REQUIRE(clock.set_syncs(std::vector<ClockSync>{{200, 1u << 20, 0},
                                                 {1u << 30, 1u << 21, 0},
                                                 {1ull << 62, 1ull << 62, 0}}) == 0);
  int64_t last = clock.to_ns(0);
  for (uint64_t ticks = 1; ticks != 0; ticks += ticks / 3 + 1) {
    const int64_t now = clock.to_ns(ticks);
    CHECK(now >= last);
    last = now;
    if (ticks > UINT64_MAX / 2) break;
  }
  const ClockMap slow({1ull << 40, 0, 0}, 1);  // a tick is a second
  CHECK(slow.to_ns(UINT64_MAX) == std::numeric_limits<int64_t>::max());
  CHECK(slow.to_ns(0) < -std::numeric_limits<int64_t>::max() + 2);
  // Small ticks are before an origin that is near the end of their range.
  const ClockMap late({UINT64_MAX - 10, 0, 0}, 1'000'000'000);
  CHECK(late.to_ns(5) < -std::numeric_limits<int64_t>::max() + 2);
}

TEST_CASE("realtime is the start's, shifted") {
  const ClockMap clock({0, 0, 1'700'000'000'000'000'000}, 1'000'000'000);
  CHECK(clock.to_realtime_ns(-5) == 1'699'999'999'999'999'995);
}

TEST_CASE("to_ticks is to_ns backwards, in order, and saturates") {
  ClockMap clock({1'000'000, 5'000'000, 0}, 2'600'000'000);
  std::mt19937_64 random(1);
  std::vector<ClockSync> syncs;
  uint64_t ticks = 1'000'000;
  uint64_t ns = 5'000'000;
  for (int i = 0; i < 50; ++i) {
    ns += 1000 + random() % 1'000'000;
    ticks += (ns - 5'000'000) * 26 / 10 + 1'000'000 > ticks
                 ? (ns - 5'000'000) * 26 / 10 + 1'000'000 - ticks
                 : 1;
    syncs.push_back({ticks, ns, 0});
  }
  CHECK(clock.set_syncs(syncs) == 0);
  uint64_t last = 0;
  for (uint64_t at = 4'700'000; at < ns + 1'000'000; at += 997) {
    const uint64_t found = clock.to_ticks(at);
    CHECK(found >= last);
    CHECK(clock.to_ns(found) == static_cast<int64_t>(at) - 5'000'000);
    last = found;
  }
  CHECK(clock.to_ticks(0) == 0);
  CHECK(clock.to_ticks(UINT64_MAX) == UINT64_MAX);
}

// A CLOCK_MONOTONIC that is slewed: its rate against the ticks changes each half second,
// while the recorder syncs each second. The kernel's stamps must be converted to about
// the tick at which they were made: within a fourth of the interval times the change of
// rate.
TEST_CASE("a slewed clock: an error as large as the change of rate in one interval") {
  constexpr uint64_t kRate = 2'600'000'000;  // ticks per second
  constexpr int64_t kSteps = 40;
  const unsigned seed = std::random_device{}();
  CAPTURE(seed);
  std::mt19937_64 random(seed);
  std::uniform_int_distribution<int64_t> ppm(-500, 500);
  struct Step {
    uint64_t ticks, ns;
    int64_t ppm;
  };
  std::vector<Step> steps{{1'000'000, 77'000'000'000, ppm(random)}};
  while (steps.size() <= kSteps) {
    const Step& last = steps.back();
    steps.push_back({last.ticks + kRate / 2,
                     last.ns + static_cast<uint64_t>(500'000'000 + last.ppm * 500),
                     ppm(random)});
  }
  std::vector<ClockSync> syncs;
  for (size_t i = 0; i < steps.size(); i += 2) {
    syncs.push_back({steps[i].ticks, steps[i].ns, 0});
  }
  ClockMap clock(syncs.front(), kRate);
  REQUIRE(clock.set_syncs(syncs) == 0);
  for (size_t i = 0; i + 1 < steps.size(); ++i) {
    const size_t first = i & ~size_t{1};
    const uint64_t change =
        static_cast<uint64_t>(std::abs(steps[first].ppm - steps[first + 1].ppm));
    const uint64_t bound_ns = change * 1'000 / 4 + 2;
    for (uint64_t ms = 0; ms < 500; ms += 10) {
      const uint64_t at = steps[i].ticks + ms * (kRate / 1000);
      const uint64_t stamp =
          steps[i].ns + ms * static_cast<uint64_t>(1'000'000 + steps[i].ppm);
      const uint64_t got = clock.to_ticks(stamp);
      const uint64_t off = got > at ? got - at : at - got;
      // The bound is for the mean rate of the interval, which is not the nominal one.
      REQUIRE(off <= bound_ns * 26 / 10 + bound_ns / 100 + 3);
    }
  }
}

// The syncs of a clock whose rate is `first` ppm off until `change_ns`, then `second`;
// they are up to `noise` ns wrong.
std::vector<ClockSync> bent_syncs(int64_t first, int64_t second, uint64_t change_ns,
                                  uint64_t interval_ns, std::mt19937_64& random,
                                  uint64_t noise) {
  std::vector<ClockSync> syncs;
  for (uint64_t at = 0; at <= 10 * interval_ns; at += interval_ns) {
    const auto in_first = static_cast<int64_t>(std::min(at, change_ns));
    const auto in_second = static_cast<int64_t>(at) - in_first;
    const int64_t more = (in_first * first + in_second * second) / 1'000'000;
    syncs.push_back(
        {1'000'000 + at * 26 / 10,
         at + static_cast<uint64_t>(more) + 77'000'000 + random() % (noise + 1), 0});
  }
  return syncs;
}

TEST_CASE("a clock whose rate changes once between two syncs is known to the ns") {
  std::mt19937_64 random(std::random_device{}());
  for (const uint64_t interval : {250'000'000u, 1'000'000'000u}) {
    for (const int64_t ppm : {-1000, -500, -20, 5, 500, 1000}) {
      const uint64_t change =
          4 * interval + 1'000'000 + random() % (interval - 2'000'000);
      const auto syncs = bent_syncs(-200, -200 + ppm, change, interval, random, 20);
      ClockMap clock(syncs.front(), 2'600'000'000);
      REQUIRE(clock.set_syncs(syncs) == 0);
      CAPTURE(interval);
      CAPTURE(ppm);
      CAPTURE(change);
      for (uint64_t at = 0; at < 10 * interval; at += interval / 97) {
        const auto in_first = static_cast<int64_t>(std::min(at, change));
        const auto in_second = static_cast<int64_t>(at) - in_first;
        const int64_t wanted = static_cast<int64_t>(at) +
                               (in_first * -200 + in_second * (ppm - 200)) / 1'000'000;
        const int64_t got = clock.to_ns(1'000'000 + at * 26 / 10) +
                            static_cast<int64_t>(syncs.front().monotonic_ns - 77'000'000);
        // The error is the noise, or twice that where a line is extrapolated.
        REQUIRE(std::abs(got - wanted) <= 100);
        const uint64_t stamp = static_cast<uint64_t>(wanted) + 77'000'000;
        REQUIRE(
            std::abs(static_cast<int64_t>(clock.to_ticks(stamp) - 1'000'000) * 10 / 26 -
                     static_cast<int64_t>(at)) <= 101);
      }
    }
  }
}

}  // namespace
}  // namespace arctrace::reader
