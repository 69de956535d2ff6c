// Functions before and after a change.
#include "reader/analysis/function_diff.hpp"

#include <doctest/doctest.h>

#include "tests/support/record_script.hpp"

using namespace arctrace::reader;
using namespace arctrace::testing;

namespace {

// main calls each of these functions for some ns.
void add_run(FunctionDiff& diff, DiffSide side,
             const std::vector<std::pair<const char*, int64_t>>& calls) {
  RecordScript script;
  const ThreadIndex t = script.program(7, "p");
  script.enter(t, 0, "main");
  int64_t now = 0;
  for (const auto& [name, duration_ns] : calls) {
    script.enter(t, now, name);
    script.exit(t, now += duration_ns);
  }
  script.exit(t, now);
  Replay replay(script.definitions, nullptr);
  script.replay(replay);
  diff.add_run(side, replay);
}

}  // namespace

TEST_CASE("one run a side: exact sums, the largest change first, no noise known") {
  FunctionDiff diff;
  add_run(diff, DiffSide::kBefore, {{"f", 100}, {"f", 50}, {"g", 30}, {"gone", 1}});
  add_run(diff, DiffSide::kAfter, {{"f", 140}, {"g", 10}, {"new", 5}});
  CHECK_FALSE(diff.is_noise_known());
  const std::vector<FunctionChange> changes = diff.changes(SortKey::kBase);
  REQUIRE(changes.size() == 5);
  CHECK(changes[0].name == "g");
  CHECK(changes[0].before.base_ns == 30);
  CHECK(changes[0].after.base_ns == 10);
  CHECK_FALSE(changes[0].base_noise_ns.has_value());
  CHECK(changes[1].name == "f");
  CHECK(changes[1].before.calls == 2);
  CHECK(changes[1].after.calls == 1);
  CHECK(changes[2].name == "new");
  CHECK(changes[2].before.calls == 0);
  CHECK(changes[3].name == "gone");
  CHECK(changes[3].after.calls == 0);
  CHECK(changes[4].name == "main");
  CHECK(diff.changes(SortKey::kCum).front().name == "main");
  CHECK(diff.changes(SortKey::kName).front().name == "f");
}

TEST_CASE("several runs: means, and the noise between them") {
  FunctionDiff diff;
  for (const int64_t ns : {100, 110, 90}) add_run(diff, DiffSide::kBefore, {{"f", ns}});
  for (const int64_t ns : {80, 81, 79}) {
    add_run(diff, DiffSide::kAfter, {{"f", ns}, {"new", 3}});
  }
  CHECK(diff.is_noise_known());
  const std::vector<FunctionChange> changes = diff.changes(SortKey::kBase);
  CHECK(changes[0].name == "f");
  CHECK(changes[0].before.base_ns == 100);
  CHECK(changes[0].after.base_ns == 80);
  // t = 2.776 for 4 degrees of freedom; squares 200 and 2.
  CHECK(changes[0].base_noise_ns == 16);
  CHECK(changes[1].name == "new");
  CHECK(changes[1].before.calls == 0);
  CHECK(changes[1].after.calls == 1);
}

TEST_CASE("noise needs two values on each side") {
  CHECK_FALSE(noise_of({1}, {1, 2, 3}).has_value());
  CHECK(noise_of({1, 1}, {5, 5}) == 0.0);
  CHECK(*noise_of({0, 2}, {0, 2}) == doctest::Approx(4.303 * 1.41421356).epsilon(0.001));
}
