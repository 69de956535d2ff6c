// The invariants between the sums of a trace: random traces satisfy them, and a wrong sum
// is found.
#include <doctest/doctest.h>

#include <random>

#include "reader/analysis/function_totals.hpp"
#include "tests/support/random_script.hpp"
#include "tests/unit/report/viewed.hpp"

using namespace arctrace::reader;
using namespace arctrace::testing;

namespace {

struct Replayed {
  explicit Replayed(const RecordScript& script, const ReplayFilter& filter = {})
      : replay(script.definitions, nullptr, options(filter)) {
    script.replay(replay);
  }
  static ReplayOptions options(const ReplayFilter& filter) {
    ReplayOptions made;
    made.filter = filter;
    return made;
  }
  Replay replay;
};

}  // namespace

TEST_CASE("random traces keep the invariants, with filters too") {
  for (uint64_t seed = test_seed(); seed < test_seed() + 300; ++seed) {
    CAPTURE(seed);
    const RandomScript random(seed, {});
    std::mt19937_64 rng(seed);
    ReplayFilter filter;
    for (int i = 0; i < 4; ++i) {
      CHECK(broken_invariants(Replayed(random.script, filter).replay).empty());
      filter.max_depth = static_cast<uint32_t>(1 + rng() % 6);
      filter.min_duration_ns = rng() % 60;
      if (rng() % 2 == 0) filter.only = {"f1", "f3"};
      if (rng() % 2 == 0) filter.except = {"f2"};
      filter.from_ns = static_cast<int64_t>(rng() % 500);
      filter.until_ns = filter.from_ns + static_cast<int64_t>(rng() % 3000);
    }
  }
}

TEST_CASE("nothing recorded keeps them") {
  const RecordScript script;
  CHECK(broken_invariants(Replayed(script).replay).empty());
}

TEST_CASE("a sum that is wrong is found") {
  const RecordScript script = treetest();
  Replayed replayed(script);
  CHECK(broken_invariants(replayed.replay).empty());
  // The replay does not notice the change.
  auto& tree = const_cast<CallTree&>(replayed.replay.tree());
  const NodeIndex root = replayed.replay.threads()[0].root;
  CallNode& main = tree[tree[root].first_child];

  main.self_ns += 5;
  CHECK_FALSE(broken_invariants(replayed.replay).empty());
  main.self_ns -= 5;
  main.total_ns += 1;
  CHECK_FALSE(broken_invariants(replayed.replay).empty());
  main.total_ns -= 1;
  CHECK(broken_invariants(replayed.replay).empty());
  tree[root].total_ns += 1;
  tree[root].self_ns += 1;
  CHECK(broken_invariants(replayed.replay).front() ==
        "thread 7: time is 100001, not 100000");
  CHECK(broken_invariants(replayed.replay, 1).size() == 1);
}
