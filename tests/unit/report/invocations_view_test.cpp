// The view `invocations`: a row for each call.
#include <doctest/doctest.h>

#include "reader/report/views.hpp"
#include "tests/support/random_script.hpp"
#include "tests/unit/report/viewed.hpp"

using namespace arctrace::reader;
using namespace arctrace::testing;

namespace {

struct Rows {
  ViewOptions options;
  ReplayFilter filter;
  size_t in_memory = 1000;

  Rows() { options.sort = SortKey::kEntry; }

  std::string text(const RecordScript& script) {
    return text_of(*view(), script, replay_options());
  }
  Json json(const RecordScript& script) {
    return json_of(*view(), script, replay_options()).at("invocations");
  }

 private:
  std::unique_ptr<View> view() {
    ViewSettings settings;
    settings.options = options;
    settings.describe = describe_values;
    return make_invocations_view(settings, in_memory);
  }
  ReplayOptions replay_options() {
    ReplayOptions made;
    made.filter = filter;
    return made;
  }
};

RecordScript sample() {
  RecordScript s;
  const ThreadIndex a = s.program(10, "one");
  const ThreadIndex b = s.program(20, "two");
  s.enter(a, 1'000, "f");
  s.enter(b, 1'500, "main");
  s.enter(a, 2'000, "g");
  s.exit(a, 4'000);
  s.exit(a, 5'000);
  s.exit_named(a, 6'000, "main");
  s.exit_named(a, 7'000, "start");
  return s;
}

}  // namespace

TEST_CASE("one row for each call, in the order of entry") {
  CHECK(Rows().text(sample()) == R"(
     Number            Start             Stop     Duration         Self  Process/thread   Name
          0      0.000001000      0.000007000      6.00 us      1.00 us  10/10            start [entered before tracing]
          1      0.000001000      0.000006000      5.00 us      1.00 us  10/10            main [entered before tracing]
          2      0.000001000      0.000005000      4.00 us      2.00 us  10/10            f
          3      0.000001500      0.000007000      5.50 us      5.50 us  20/20            main [open at the end]
          4      0.000002000      0.000004000      2.00 us      2.00 us  10/10            g
)");
}

TEST_CASE("the longest calls, limited") {
  Rows rows;
  rows.options.sort = SortKey::kTotal;
  rows.options.limit = 2;
  CHECK(rows.text(sample()) == R"(
     Number            Start             Stop     Duration         Self  Process/thread   Name
          0      0.000001000      0.000007000      6.00 us      1.00 us  10/10            start [entered before tracing]
          3      0.000001500      0.000007000      5.50 us      5.50 us  20/20            main [open at the end]
  (3 rows not shown)
)");
  rows.options.limit = 0;
  CHECK(rows.json(sample()).empty());
}

TEST_CASE("rows as JSON, limited in the order of entry") {
  Rows rows;
  rows.options.limit = 3;
  const Json json = rows.json(sample());
  REQUIRE(json.size() == 3);
  CHECK(json.at(2).at("seq") == 2);
  CHECK(json.at(2).at("name") == "f");
  CHECK(json.at(2).at("start_ns") == 1'000);
  CHECK(json.at(2).at("stop_ns") == 5'000);
  CHECK(json.at(2).at("delta_ns") == 4'000);
  CHECK(json.at(2).at("base_ns") == 2'000);
  CHECK(json.at(2).at("pid") == 10);
  CHECK(json.at(0).at("flags") == Json({"entered_before"}));
}

TEST_CASE("rows in a time range: what was open comes first") {
  Rows rows;
  rows.filter.from_ns = 3'000;
  rows.filter.until_ns = 4'500;
  const Json json = rows.json(sample());
  // start and main are calls from before tracing, of which only records after the range
  // tell.
  REQUIRE(json.size() == 3);
  for (size_t i = 0; i < json.size(); ++i) {
    CHECK(json.at(i).at("start_ns") == 3'000);
  }
  CHECK(json.at(0).at("name") == "f");
  CHECK(json.at(1).at("name") == "g");
  CHECK(json.at(2).at("name") == "main");
  CHECK(json.at(2).at("flags") == Json({"cut_start", "cut_stop"}));
  CHECK(json.at(0).at("flags") == Json({"cut_start", "cut_stop"}));
  CHECK(json.at(1).at("flags") == Json({"cut_start"}));
}

TEST_CASE("random traces: rows add up to the tree, however few are held in memory") {
  for (uint64_t seed = test_seed(); seed < test_seed() + 100; ++seed) {
    CAPTURE(seed);
    const RandomScript random(seed, {});
    Rows rows;
    rows.filter.min_duration_ns = seed % 3 * 20;
    const Json all = rows.json(random.script);
    rows.in_memory = 2 + seed % 7;
    CHECK(rows.json(random.script) == all);

    Viewed viewed(random.script);
    viewed.replay.filter = rows.filter;
    std::map<std::string, std::pair<uint64_t, uint64_t>> expected, found;
    const Json flat = viewed.json("flat");
    for (const Json& row : flat.at("functions")) {
      expected[row.at("name")] = {row.at("calls"), row.at("base_ns")};
    }
    int64_t before = INT64_MIN;
    for (size_t i = 0; i < all.size(); ++i) {
      const Json& row = all.at(i);
      CHECK(row.at("seq") == i);
      const std::string flags = row.value("flags", Json::array()).dump();
      // A resumed frame is one call in two rows; it starts at its first start.
      const bool resumed = flags.find("resumed") != std::string::npos;
      if (!resumed) {
        CHECK(row.at("start_ns") >= before);
        before = row.at("start_ns");
      }
      auto& sums = found[row.at("name")];
      sums.first += resumed || flags.find("inherited") != std::string::npos ? 0u : 1u;
      sums.second += uint64_t{row.at("base_ns")};
    }
    for (const auto& row : expected) {
      CAPTURE(row.first);
      CHECK(found[row.first].first == row.second.first);
      CHECK(found[row.first].second == row.second.second);
    }
    CHECK(found.size() == expected.size());
  }
}

TEST_CASE("arguments and results stand after the name, also of rows on disk") {
  RecordScript s;
  const ThreadIndex a = s.program(10, "one");
  for (int64_t i = 0; i < 20; ++i) {
    s.enter(a, 100 * i, "outer");
    s.arguments(a, 100 * i, {number_arg(ARCTRACE_VALUE_SIGNED, 1, uint64_t(i), 4)});
    s.enter(a, 100 * i + 10, "inner");
    s.exit(a, 100 * i + 20);
    s.result(a, 100 * i + 50, {number_arg(ARCTRACE_VALUE_SIGNED, 0, uint64_t(-i), 4)});
    s.exit(a, 100 * i + 50);
  }
  s.enter(a, 3000, "last");
  s.arguments(a, 3000, {{ARCTRACE_VALUE_STRING, 1, "x"}});
  Rows rows;
  rows.in_memory = 4;
  const Json json = rows.json(s);
  REQUIRE(json.size() == 41);
  for (size_t i = 0; i < 20; ++i) {
    CHECK(json[2 * i].at("args") == Json::array({i}));
    CHECK(json[2 * i].at("retval") == -int64_t(i));
    CHECK_FALSE(json[2 * i + 1].contains("args"));
  }
  CHECK_FALSE(json[40].contains("retval"));
  const std::string text = rows.text(s);
  CHECK(text.find(" outer(7) = -7\n") != std::string::npos);
  CHECK(text.find(" inner\n") != std::string::npos);
  CHECK(text.find(" last(\"x\") [open at the end]\n") != std::string::npos);
}

TEST_CASE("the locks of a call are its arguments") {
  RecordScript s;
  const ThreadIndex a = s.program(10, "one");
  s.enter(a, 1'000, "main");
  s.enter(a, 2'000, "cnd_wait", {0x1000, 0x2000});
  s.enter(a, 2'500, "handler");
  s.exit(a, 2'600);
  s.exit(a, 3'000);
  s.enter(a, 4'000, "mtx_trylock", {0x2000});
  s.result(a, 4'500, {number_arg(ARCTRACE_VALUE_SIGNED, 0, 1, 4)});
  s.exit(a, 4'500);
  s.exit(a, 5'000);
  const Json rows = Rows().json(s);
  REQUIRE(rows.size() == 4);
  CHECK(rows[0].value("args", Json()).is_null());
  CHECK(rows[1].at("name") == "cnd_wait");
  CHECK(rows[1].at("args").dump() == R"(["0x1000","0x2000"])");
  CHECK(rows[2].value("args", Json()).is_null());
  CHECK(rows[3].at("args").dump() == R"(["0x2000"])");
  CHECK(rows[3].at("retval") == 1);
}
