// Random records, valid and invalid, compared with the naive replay.
#include <doctest/doctest.h>

#include <cstdlib>
#include <map>
#include <random>

#include "tests/support/naive_replay.hpp"
#include "tests/support/random_script.hpp"

using namespace arctrace::reader;
using namespace arctrace::testing;

namespace {

NaiveThread::Paths paths_of(const Replay& replay, NodeIndex root) {
  NaiveThread::Paths paths;
  const CallTree& tree = replay.tree();
  for (NodeIndex at = root; at != kNoNode; at = tree.next_in_preorder(at, root)) {
    std::vector<std::string> path;
    for (NodeIndex up = at; up != root; up = tree[up].parent) {
      path.insert(path.begin(), replay.functions()[tree[up].function].name);
    }
    paths[path] = {at == root ? 0 : tree[at].calls, tree[at].self_ns};
  }
  return paths;
}

std::string text_of(const NaiveThread::Paths& paths) {
  std::string text;
  for (const auto& [path, sums] : paths) {
    if (sums.calls == 0 && sums.self_ns == 0) continue;
    for (const std::string& name : path) text += '/' + name;
    text += ' ' + std::to_string(sums.calls) + ':' + std::to_string(sums.self_ns) + '\n';
  }
  return text;
}

void compare(const RandomScript& random, const ReplayFilter& filter) {
  const RecordScript& script = random.script;
  ReplayOptions options;
  options.filter = filter;
  Replay replay(script.definitions, nullptr, options);
  script.replay(replay);

  std::map<ThreadIndex, NaiveThread> naive;
  for (const Record& record : script.records) {
    const auto name_of = [&](uint64_t key) {
      return std::string(*script.definitions.name(0, static_cast<uint32_t>(key)));
    };
    naive.try_emplace(record.thread, name_of).first->second.apply(record);
  }
  NaiveThread::Filter slow;
  if (!filter.only.empty()) {
    slow.only = [&](const std::string& name) { return name == filter.only[0]; };
  }
  if (!filter.except.empty()) {
    slow.except = [&](const std::string& name) { return name == filter.except[0]; };
  }
  slow.max_depth = filter.max_depth;
  slow.from_ns = filter.from_ns;
  slow.until_ns = filter.until_ns;
  slow.min_duration_ns = static_cast<int64_t>(filter.min_duration_ns);

  uint64_t orphans = 0;
  std::string expected, found;
  for (auto& [thread, calls] : naive) {
    calls.finish(script.end_ns());
    orphans += calls.orphans;
    const std::string text = text_of(calls.sums(slow));
    if (!text.empty()) expected += std::to_string(thread) + '\n' + text;
  }
  for (const ThreadTree& thread : replay.threads()) {
    const std::string text = text_of(paths_of(replay, thread.root));
    if (!text.empty()) found += std::to_string(thread.thread) + '\n' + text;
    CHECK(replay.tree()[thread.root].total_ns ==
          static_cast<uint64_t>(thread.stop_ns - thread.start_ns));
  }
  CHECK(found == expected);
  if (!filter.has_range()) CHECK(replay.totals().orphans == orphans);
}

}  // namespace

TEST_CASE("random traces: the naive replay agrees") {
  for (uint64_t seed = test_seed(); seed < test_seed() + 400; ++seed) {
    CAPTURE(seed);
    const RandomScript random(seed, {});
    compare(random, {});
    ReplayFilter filter;
    std::mt19937_64 rng(seed);
    filter.min_duration_ns = rng() % 100;
    compare(random, filter);
  }
}

TEST_CASE("random traces in a time range: the naive replay agrees") {
  for (uint64_t seed = test_seed(); seed < test_seed() + 400; ++seed) {
    CAPTURE(seed);
    // A vfork parent is in no frame of its own while the child runs.
    RandomScript::Shape shape;
    shape.vfork = false;
    const RandomScript random(seed, shape);
    std::mt19937_64 rng(seed);
    const auto time = [&] {
      return static_cast<int64_t>(rng() % static_cast<uint64_t>(random.last_ns + 2));
    };
    ReplayFilter filter;
    filter.from_ns = time();
    filter.until_ns = filter.from_ns + time();
    compare(random, filter);
    filter.until_ns = INT64_MAX;
    compare(random, filter);
    filter.until_ns = filter.from_ns;
    filter.from_ns = INT64_MIN;
    compare(random, filter);
  }
}

TEST_CASE("random traces with filters: the naive replay agrees") {
  for (uint64_t seed = test_seed(); seed < test_seed() + 400; ++seed) {
    CAPTURE(seed);
    // An adopted frame comes too late for filters that check the frames around a call.
    RandomScript::Shape shape;
    shape.exit_named = false;
    const RandomScript random(seed, shape);
    std::mt19937_64 rng(seed);
    ReplayFilter filter;
    if (rng() % 2 == 0) filter.only = {"f1"};
    if (rng() % 2 == 0) filter.except = {"f2"};
    if (rng() % 2 == 0) filter.max_depth = static_cast<uint32_t>(rng() % 5);
    compare(random, filter);
    filter.min_duration_ns = rng() % 50;
    compare(random, filter);
  }
}
