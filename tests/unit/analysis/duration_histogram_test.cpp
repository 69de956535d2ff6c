// Compares quantiles of durations with those of a sorted list.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include "reader/analysis/function_times.hpp"
#include "tests/support/random_script.hpp"

using namespace arctrace::reader;
using namespace arctrace::testing;

namespace {

uint64_t exact(const std::vector<uint64_t>& sorted, uint64_t per_mille) {
  return sorted[(sorted.size() * per_mille + 999) / 1000 - 1];
}

}  // namespace

TEST_CASE("quantiles lie within 1.6 % of the exact ones, whatever the durations are") {
  std::mt19937_64 rng(test_seed());
  for (const double width : {0.5, 5.0, 20.0, 63.0}) {
    for (const size_t count : {size_t{2}, size_t{99}, size_t{1000}, size_t{20'000}}) {
      CAPTURE(width);
      CAPTURE(count);
      std::vector<uint64_t> all;
      DurationHistogram histogram;
      absl::uint128 sum = 0;
      for (size_t i = 0; i < count; ++i) {
        const double exponent = std::uniform_real_distribution<>(0, width)(rng);
        all.push_back(static_cast<uint64_t>(std::exp2(exponent)));
        histogram.add(all.back());
        sum += all.back();
      }
      std::sort(all.begin(), all.end());
      CHECK(histogram.count() == count);
      CHECK(histogram.min_ns() == all.front());
      CHECK(histogram.max_ns() == all.back());
      CHECK(histogram.average_ns() == static_cast<uint64_t>(sum / count));
      for (const uint64_t per_mille : {500u, 900u, 990u, 999u}) {
        const std::optional<uint64_t> found = histogram.quantile_ns(per_mille);
        REQUIRE(found.has_value() == (count * (1000 - per_mille) >= 1000));
        if (!found.has_value()) continue;
        const auto expected = static_cast<double>(exact(all, per_mille));
        CHECK(std::abs(static_cast<double>(*found) - expected) <= expected * 0.016);
      }
    }
  }
}

TEST_CASE("extreme durations") {
  DurationHistogram histogram;
  histogram.add(UINT64_MAX);
  histogram.add(0);
  CHECK(histogram.min_ns() == 0);
  CHECK(histogram.max_ns() == UINT64_MAX);
  CHECK(histogram.average_ns() == UINT64_MAX / 2);
  CHECK(histogram.quantile_ns(500) == 0);
  CHECK_FALSE(histogram.quantile_ns(900).has_value());
}

TEST_CASE("powers of two hold each duration once") {
  DurationHistogram histogram;
  for (const uint64_t duration :
       {0u, 1u, 2u, 3u, 31u, 32u, 63u, 64u, 1000u, 1023u, 1024u}) {
    histogram.add(duration);
  }
  std::vector<std::pair<uint64_t, uint64_t>> found;
  uint64_t next_ns = 0;
  histogram.for_powers([&](uint64_t from_ns, uint64_t until_ns, uint64_t durations) {
    CHECK(from_ns == next_ns);
    next_ns = until_ns;
    if (durations != 0) found.emplace_back(from_ns, durations);
  });
  CHECK(next_ns == 2048);
  CHECK(found ==
        std::vector<std::pair<uint64_t, uint64_t>>{
            {0, 1}, {1, 1}, {2, 2}, {16, 1}, {32, 2}, {64, 1}, {512, 2}, {1024, 1}});
}
