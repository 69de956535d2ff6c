// Compares rows of the time line in bounded memory with the same stretches stored whole.
#include "reader/ui/model/time_rows.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <vector>

namespace arctrace::reader {
namespace {

// Neighbouring stretches, from 1 ns to some 30 us long, with pauses between them.
std::vector<Stretch> made_stretches(size_t count, int64_t start_ns) {
  std::mt19937_64 random(7);
  std::vector<Stretch> made;
  for (size_t i = 0; i < count; ++i) {
    const auto length = static_cast<int64_t>(1 + (random() & 0x7FFF) % (1u << i % 16));
    made.push_back({start_ns, start_ns + length, static_cast<uint32_t>(i % 5), 0});
    start_ns += length + static_cast<int64_t>(random() % 200);
  }
  return made;
}

struct Sums {
  uint64_t count = 0, busy_ns = 0;
  bool operator==(const Sums&) const = default;
};

Sums sums_of(const TimeRow& row) {
  Sums sums;
  for (const Stretch& stretch : row.stretches) {
    ++sums.count;
    sums.busy_ns += stretch.duration_ns();
  }
  for (const DensityBucket& bucket : row.buckets) {
    sums.count += bucket.count;
    sums.busy_ns += bucket.busy_ns;
  }
  return sums;
}

bool in_order(const TimeRow& row) {
  const auto before = [](const auto& a, const auto& b) {
    return a.start_ns < b.start_ns;
  };
  return std::is_sorted(row.stretches.begin(), row.stretches.end(), before) &&
         std::is_sorted(row.buckets.begin(), row.buckets.end(), before);
}

TEST_CASE("stretches are exact as long as they fit") {
  TimeRows rows(1000);
  const std::vector<Stretch> made = made_stretches(1000, -5000);
  for (const Stretch& stretch : made) rows.add(2, stretch);
  CHECK(rows.grain_ns() == 0);
  CHECK(rows.items() == 1000);
  CHECK(rows.row(2).stretches.size() == 1000);
  CHECK(rows.row(0).stretches.empty());
  CHECK(rows.row(99).stretches.empty());
}

TEST_CASE("short ones become crowds that keep number, time and the longest") {
  for (const int64_t start_ns : {int64_t{-40'000'000}, int64_t{0}, int64_t{1} << 60}) {
    const std::vector<Stretch> made = made_stretches(20'000, start_ns);
    TimeRows rows(3000);
    for (size_t i = 0; i < made.size(); ++i) rows.add(i % 3, made[i]);
    rows.sort();
    CHECK(rows.items() <= 3000);
    const uint64_t grain_ns = rows.grain_ns();
    REQUIRE(grain_ns > 0);
    size_t items = 0;
    for (size_t row = 0; row < 3; ++row) {
      TimeRow whole;
      for (size_t i = row; i < made.size(); i += 3) whole.stretches.push_back(made[i]);
      const TimeRow& kept = rows.row(row);
      CHECK(in_order(kept));
      CHECK(sums_of(kept) == sums_of(whole));
      items += kept.stretches.size() + kept.buckets.size();
      // All stretches that are at least a grain long are exact, and only these.
      size_t exact = 0;
      for (const Stretch& stretch : whole.stretches) {
        if (stretch.duration_ns() >= grain_ns) ++exact;
      }
      CHECK(kept.stretches.size() == exact);
      for (const DensityBucket& bucket : kept.buckets) {
        uint64_t longest_ns = 0;
        for (const Stretch& stretch : whole.stretches) {
          if (stretch.duration_ns() < grain_ns &&
              piece_start_ns(stretch.start_ns, grain_ns) == bucket.start_ns) {
            longest_ns = std::max(longest_ns, stretch.duration_ns());
          }
        }
        REQUIRE(bucket.longest_ns == longest_ns);
      }
    }
    CHECK(rows.items() == items);
  }
}

TEST_CASE(
    "what is kept for something is exact as long as it leaves room for the others") {
  std::vector<Stretch> made = made_stretches(20'000, 0);
  for (size_t i = 5000; i < 5400; ++i) made[i].exact_for = ExactFor::kRange;
  for (size_t i = 5400; i < 5600; ++i) made[i].exact_for = ExactFor::kCriticalPath;
  TimeRows rows(3000);
  for (const Stretch& stretch : made) rows.add(0, stretch);
  rows.coarsen_to(2000);
  rows.sort();
  CHECK(rows.items() <= 2000);
  CHECK(rows.grain_ns(ExactFor::kNothing) == rows.grain_ns());
  CHECK(rows.grain_ns() > 0);
  CHECK(rows.grain_ns(ExactFor::kRange) == 0);
  CHECK(rows.grain_ns(ExactFor::kCriticalPath) == 0);
  TimeRow whole;
  whole.stretches = made;
  const auto kept_in = [](const TimeRow& row) {
    return std::count_if(
        row.stretches.begin(), row.stretches.end(),
        [](const Stretch& stretch) { return stretch.exact_for != ExactFor::kNothing; });
  };
  CHECK(in_order(rows.row(0)));
  CHECK(sums_of(rows.row(0)) == sums_of(whole));
  CHECK(kept_in(rows.row(0)) == 600);
  // The same is true for a pixel that is longer than a grain.
  const TimeRow seen = seen_of_row(rows.row(0), 0, INT64_MAX, uint64_t{1} << 20);
  CHECK(kept_in(seen) == 600);
  CHECK(sums_of(seen) == sums_of(whole));
}

TEST_CASE("of too many that are kept for something, the shortest become crowds") {
  for (const ExactFor what : {ExactFor::kRange, ExactFor::kCriticalPath}) {
    std::vector<Stretch> made = made_stretches(20'000, 0);
    TimeRow whole;
    TimeRows rows(3000);
    for (size_t i = 0; i < made.size(); ++i) {
      if (i % 2 == 0) made[i].exact_for = what;
      rows.add(0, made[i]);
      CHECK(rows.items() <= 3001);
      whole.stretches.push_back(made[i]);
    }
    rows.sort();
    CHECK(rows.grain_ns(what) > 0);
    CHECK(rows.grain_ns(what) < rows.grain_ns());
    CHECK(sums_of(rows.row(0)) == sums_of(whole));
    const auto exact =
        std::count_if(made.begin(), made.end(), [&](const Stretch& stretch) {
          return stretch.duration_ns() >= rows.grain_ns(stretch.exact_for);
        });
    CHECK(static_cast<size_t>(exact) == rows.row(0).stretches.size());
  }
}

TEST_CASE("a screen has at most two items for each pixel, and loses no call") {
  TimeRows rows(3000);
  const std::vector<Stretch> made = made_stretches(20'000, 1000);
  for (const Stretch& stretch : made) rows.add(0, stretch);
  rows.sort();
  const int64_t until_ns = made.back().stop_ns + 1;
  for (const uint64_t pixel_ns :
       {rows.grain_ns(), 3 * rows.grain_ns(), uint64_t{1} << 20}) {
    const TimeRow seen = seen_of_row(rows.row(0), 0, until_ns, pixel_ns);
    CHECK(in_order(seen));
    CHECK(sums_of(seen) == sums_of(rows.row(0)));
    const auto pixels = static_cast<uint64_t>(until_ns) / pixel_ns + 1;
    CHECK(seen.stretches.size() <= pixels);
    CHECK(seen.buckets.size() <= pixels);
    for (const Stretch& stretch : seen.stretches)
      CHECK(stretch.duration_ns() >= pixel_ns);
  }
}

TEST_CASE("a part of a row has what touches it") {
  TimeRow row;
  row.stretches = {{0, 10, 1, 0}, {10, 20, 2, 0}, {30, 90, 3, 0}, {95, 96, 4, 0}};
  const TimeRow seen = seen_of_row(row, 10, 95, 1);
  REQUIRE(seen.stretches.size() == 2);
  CHECK(seen.stretches[0].what == 2);
  CHECK(seen.stretches[1].what == 3);
  CHECK(seen_of_row(row, 40, 50, 1).stretches.size() == 1);
  CHECK(seen_of_row(row, 20, 30, 1).stretches.empty());
}

TEST_CASE("where a pixel is 1 ns, calls that took no time are exact, too") {
  TimeRow row;
  row.stretches = {{5, 5, 1, 0}, {5, 5, 2, 0}, {6, 7, 3, 0}};
  CHECK(seen_of_row(row, 0, 10, 1).stretches.size() == 3);
  CHECK(seen_of_row(row, 0, 10, 1).buckets.empty());
  const TimeRow coarser = seen_of_row(row, 0, 10, 2);
  CHECK(coarser.stretches.empty());
  CHECK(sums_of(coarser).count == 3);
}

// A hostile trace may have such times.
TEST_CASE("any times are taken") {
  TimeRows rows(4);
  for (const int64_t start_ns : {INT64_MAX, INT64_MIN, int64_t{-1}, int64_t{0}}) {
    for (const int64_t stop_ns : {INT64_MIN, INT64_MAX, int64_t{0}, int64_t{1}}) {
      rows.add(0, {start_ns, stop_ns, 0, 0});
    }
  }
  rows.sort();
  CHECK(sums_of(rows.row(0)).count == 16);
  CHECK(sums_of(seen_of_row(rows.row(0), INT64_MIN, INT64_MAX, UINT64_MAX)).count <= 16);
}

TEST_CASE("pieces begin at multiples of the grain, also before 0") {
  CHECK(piece_start_ns(0, 64) == 0);
  CHECK(piece_start_ns(63, 64) == 0);
  CHECK(piece_start_ns(64, 64) == 64);
  CHECK(piece_start_ns(-1, 64) == -64);
  CHECK(piece_start_ns(-64, 64) == -64);
  CHECK(piece_start_ns(-65, 64) == -128);
  CHECK(piece_start_ns(INT64_MIN, 64) == INT64_MIN);
}

}  // namespace
}  // namespace arctrace::reader
