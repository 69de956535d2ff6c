// The view `arcs`: callers and callees of each function.
#include <doctest/doctest.h>

#include <map>
#include <set>

#include "reader/analysis/function_totals.hpp"
#include "reader/report/views.hpp"
#include "tests/support/naive_replay.hpp"
#include "tests/support/random_script.hpp"
#include "tests/unit/report/viewed.hpp"

using namespace arctrace::reader;
using namespace arctrace::testing;

namespace {

using Flat = std::map<std::string, Sums>;
using Arcs = std::map<std::pair<std::string, std::string>, Sums>;

constexpr const char* kThread = "[thread]";

// Computes the sums by their definitions, one path at a time. A path's self time is in
// the total of each function on it, once.
struct NaiveSums {
  Flat flat;
  Arcs parents;   // (function, parent)
  Arcs children;  // (function, child)

  void add(const NaiveThread::Paths& paths) {
    for (const auto& [path, sums] : paths) {
      if (path.empty()) continue;
      const std::string& self = path.back();
      const std::string& caller = path.size() > 1 ? path[path.size() - 2] : kRoot;
      flat[self].calls += sums.calls;
      flat[self].self_ns += sums.self_ns;
      parents[{self, caller}].calls += sums.calls;
      parents[{self, caller}].self_ns += sums.self_ns;
      children[{caller, self}].calls += sums.calls;
      children[{caller, self}].self_ns += sums.self_ns;
      std::set<std::string> seen;
      for (size_t i = 0; i < path.size(); ++i) {
        if (!seen.insert(path[i]).second) continue;
        flat[path[i]].total_ns += sums.self_ns;
        parents[{path[i], i > 0 ? path[i - 1] : kRoot}].total_ns += sums.self_ns;
      }
      for (const std::string& f : seen) {
        if (f == self) continue;
        const auto innermost = std::find(path.rbegin(), path.rend(), f);
        children[{f, *(innermost - 1)}].total_ns += sums.self_ns;
      }
    }
  }
  const std::string kRoot = kThread;
};

template <class Key>
std::string sums_text(const std::map<Key, Sums>& sums) {
  std::string text;
  for (const auto& [key, s] : sums) {
    if constexpr (std::is_same_v<Key, std::string>) {
      text += key;
    } else {
      text += key.first + "-" + key.second;
    }
    text += ' ' + std::to_string(s.calls) + ' ' + std::to_string(s.self_ns) + ' ' +
            std::to_string(s.total_ns) + '\n';
  }
  return text;
}

}  // namespace

TEST_CASE("arcs: parents, self, children") {
  const RecordScript script = treetest();
  Viewed viewed(script);
  viewed.settings.options.limit = 2;
  CHECK(viewed.text("arcs") == R"(
1 thread: 100 us
Source         Calls   %Self  %Total         Self        Total  Function
parent             1       -     100            -       100 us    [thread]
self               1       -     100            -       100 us  main
child              1       -    70.0            -      70.0 us    mainB
child              1       -    30.0            -      30.0 us    mainA

parent             1       -    70.0            -      70.0 us    main
self               1       -    70.0            -      70.0 us  mainB
child              1    40.0    40.0      40.0 us      40.0 us    mainBB
child              1    30.0    30.0      30.0 us      30.0 us    mainBA

  (5 rows not shown)
)");
}

TEST_CASE("random traces: flat and arcs are what their definitions say, text as JSON") {
  for (uint64_t seed = test_seed(); seed < test_seed() + 150; ++seed) {
    CAPTURE(seed);
    const RandomScript random(seed, {});
    const RecordScript& script = random.script;
    std::map<ThreadIndex, NaiveThread> threads;
    for (const Record& record : script.records) {
      const auto name_of = [&](uint64_t key) {
        return std::string(*script.definitions.name(0, static_cast<uint32_t>(key)));
      };
      threads.try_emplace(record.thread, name_of).first->second.apply(record);
    }
    NaiveSums naive;
    for (auto& [index, thread] : threads) {
      thread.finish(script.end_ns());
      naive.add(thread.sums({}));
    }

    Viewed viewed(script);
    const Json json = viewed.json("arcs");
    Flat flat;
    Arcs parents, children;
    for (const Json& row : json.at("arcs")) {
      const std::string name = row.at("name");
      flat[name] = sums_of(row);
      for (const Json& arc : row.at("parents")) {
        parents[{name, arc.at("name")}] = sums_of(arc);
      }
      for (const Json& arc : row.at("children")) {
        children[{name, arc.at("name")}] = sums_of(arc);
      }
    }
    std::erase_if(naive.children,
                  [](const auto& arc) { return arc.first.first == kThread; });
    CHECK(sums_text(flat) == sums_text(naive.flat));
    CHECK(sums_text(parents) == sums_text(naive.parents));
    CHECK(sums_text(children) == sums_text(naive.children));

    // Each row of JSON stands in the text, in the same order.
    const std::string text = viewed.text("flat");
    size_t from = 0;
    const Json rows = viewed.json("flat");
    uint64_t largest_ns = 0;
    for (const Json& row : rows.at("functions")) {
      largest_ns = std::max<uint64_t>(largest_ns, row.at("cum_ns"));
    }
    const TimeScale scale = time_scale(largest_ns);
    for (const Json& row : rows.at("functions")) {
      const auto found = [&](const std::string& what) {
        const size_t offset = text.find(what, from);
        REQUIRE(offset != std::string::npos);
        from = offset + what.size();
      };
      found(" " + grouped_text(row.at("calls")) + " ");
      found(" " + duration_text(row.at("base_ns")) + " ");
      found(" " + scaled_text(row.at("cum_ns"), scale) + " ");
      found("  " + std::string(row.at("name")));
    }
  }
}
