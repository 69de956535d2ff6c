// Compares functions before and after a change.
#include "reader/analysis/function_diff.hpp"

#include <doctest/doctest.h>

#include "reader/symbols/symbolizer.hpp"
#include "tests/support/record_script.hpp"

using namespace arctrace::reader;
using namespace arctrace::testing;

namespace {

// Adds a run in which main calls each of these functions for some ns.
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
  const std::vector<FunctionChange> changes = diff.changes(SortKey::kSelf);
  REQUIRE(changes.size() == 5);
  CHECK(changes[0].name == "g");
  CHECK(changes[0].before.self_ns == 30);
  CHECK(changes[0].after.self_ns == 10);
  CHECK_FALSE(changes[0].self_noise_ns.has_value());
  CHECK(changes[1].name == "f");
  CHECK(changes[1].before.calls == 2);
  CHECK(changes[1].after.calls == 1);
  CHECK(changes[2].name == "new");
  CHECK(changes[2].before.calls == 0);
  CHECK(changes[3].name == "gone");
  CHECK(changes[3].after.calls == 0);
  CHECK(changes[4].name == "main");
  CHECK(diff.changes(SortKey::kTotal).front().name == "main");
  CHECK(diff.changes(SortKey::kName).front().name == "f");
}

TEST_CASE("programs of other file names are one, if only one of the sides runs each") {
  // Adds a run in which a shell runs `program`, which calls f in its module and in a
  // library.
  const auto add = [](FunctionDiff& diff, DiffSide side, const std::string& program,
                      int64_t f_ns) {
    RecordScript script;
    script.program(6, "sh");
    const ThreadIndex t = script.program(7, program);
    const ProcessIndex process = script.definitions.threads()[t].process;
    const auto add_module = [&](const std::string& path, uint64_t start) {
      Module module;
      module.start = start;
      module.end = start + 0x1000;
      module.path = path;
      script.definitions.add_module(process, module);
      ModuleSymbols symbols;
      symbols.path = path;
      symbols.functions.push_back(
          {start + 0x10, {.start = start + 0x10, .name = "f", .file = {}, .line = 0}});
      for (const std::vector<std::byte>& chunk : encode_symbols({{symbols}}, 0)) {
        REQUIRE(script.definitions.mutable_symbols().add_untrusted(chunk));
      }
    };
    add_module("/bin/" + program, 0x1000);
    add_module("/lib/libf.so", 0x3000);
    for (const uint64_t address : {uint64_t{0x1010}, uint64_t{0x3010}}) {
      script.add(t, 0, ARCTRACE_TYPE_ENTER, key_body(address));
      script.exit(t, f_ns);
    }
    Symbolizer symbolizer;
    Replay replay(script.definitions, &symbolizer);
    script.replay(replay);
    diff.add_run(side, replay);
  };
  FunctionDiff diff;
  for (int run = 0; run < 2; ++run) {
    add(diff, DiffSide::kBefore, "old", 100);
    add(diff, DiffSide::kAfter, "new", 30);
  }
  REQUIRE(diff.paired_programs().has_value());
  CHECK(diff.paired_programs()->before == "old");
  CHECK(diff.paired_programs()->after == "new");
  std::vector<FunctionChange> changes = diff.changes(SortKey::kName);
  std::erase_if(changes,
                [](const FunctionChange& change) { return change.module.empty(); });
  REQUIRE(changes.size() == 2);
  for (const FunctionChange& change : changes) {
    CHECK(change.before.calls == 1);
    CHECK(change.after.calls == 1);
  }
  CHECK(changes[0].module == "/lib/libf.so");
  CHECK(changes[1].module == "/bin/new");

  FunctionDiff same;
  add(same, DiffSide::kBefore, "old", 100);
  add(same, DiffSide::kAfter, "old", 30);
  CHECK_FALSE(same.paired_programs().has_value());
}

TEST_CASE("several runs: means, and the noise between them") {
  FunctionDiff diff;
  for (const int64_t ns : {100, 110, 90}) add_run(diff, DiffSide::kBefore, {{"f", ns}});
  for (const int64_t ns : {80, 81, 79}) {
    add_run(diff, DiffSide::kAfter, {{"f", ns}, {"new", 3}});
  }
  CHECK(diff.is_noise_known());
  const std::vector<FunctionChange> changes = diff.changes(SortKey::kSelf);
  CHECK(changes[0].name == "f");
  CHECK(changes[0].before.self_ns == 100);
  CHECK(changes[0].after.self_ns == 80);
  // t = 2.776 for 4 degrees of freedom; squares 200 and 2.
  CHECK(changes[0].self_noise_ns == 16);
  CHECK(changes[1].name == "new");
  CHECK(changes[1].before.calls == 0);
  CHECK(changes[1].after.calls == 1);
}

TEST_CASE("noise needs two values on each side") {
  CHECK_FALSE(noise_of({1}, {1, 2, 3}).has_value());
  CHECK(noise_of({1, 1}, {5, 5}) == 0.0);
  CHECK(*noise_of({0, 2}, {0, 2}) == doctest::Approx(4.303 * 1.41421356).epsilon(0.001));
}
