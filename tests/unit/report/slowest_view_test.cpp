// The views about single functions: `slowest`, `histogram` and `graph`.
#include "reader/report/views.hpp"
#include "tests/unit/report/viewed.hpp"

using namespace arctrace::reader;
using namespace arctrace::testing;

namespace {

// In main, f is called for 10, 300, 20 and 5 ns, the second time by g, and the last time
// without an end.
RecordScript calls_of_f() {
  RecordScript script;
  const ThreadIndex t = script.program(7, "p");
  script.enter(t, 0, "main");
  script.enter(t, 100, "f");
  script.exit(t, 110);
  script.enter(t, 200, "g");
  script.enter(t, 210, "f");
  script.enter(t, 220, "h");
  script.exit(t, 500);
  script.exit(t, 510);
  script.exit(t, 520);
  script.enter(t, 600, "f");
  script.exit(t, 620);
  script.enter(t, 700, "f");
  script.enter(t, 705, "h");
  return script;
}

}  // namespace

TEST_CASE("slowest: sorted, limited, with the frames around the call") {
  const RecordScript script = calls_of_f();
  Viewed viewed(script);
  viewed.settings.functions = {"f"};
  viewed.settings.options.limit = 2;
  CHECK(viewed.text("slowest") == R"(
     Duration         Self            Start  Process/thread   Call
       300 ns        20 ns      0.000000210  7/7              f
                            in main > g
        20 ns        20 ns      0.000000600  7/7              f
                            in main
  (2 rows not shown)
)");
  viewed.settings.options.limit = 10;
  const Json json = viewed.json("slowest");
  CHECK(json.at("calls") == 4);
  CHECK(json.at("slowest").size() == 4);
  CHECK(json.at("slowest").at(0).at("path") == Json({"main", "g", "f"}));
  CHECK(json.at("slowest").at(0).at("delta_ns") == 300);
  viewed.settings.options.sort = SortKey::kSelf;
  CHECK(viewed.json("slowest").at("slowest").at(3).at("base_ns") == 5);
}

TEST_CASE("slowest: calls that were open before and after records that are lost") {
  RecordScript script;
  const ThreadIndex t = script.program(7, "p");
  script.stack(t, 0, {});
  script.enter(t, 10, "main");
  script.enter(t, 20, "f");
  script.add(t, 500, ARCTRACE_TYPE_LOST, lost_body(ARCTRACE_LOST_FULL, 70, 30));
  script.stack(t, 500, {"main", "f"});
  script.enter(t, 510, "g");
  script.exit(t, 520);
  script.exit(t, 600);
  script.exit(t, 700);
  Viewed viewed(script);
  viewed.settings.functions = {"*"};
  const std::string text = viewed.text("slowest");
  CHECK(text.find("  main [across a gap]\n") != std::string::npos);
  CHECK(text.find("  f [across a gap]\n") != std::string::npos);
  CHECK(text.find("  g\n") != std::string::npos);
  const Json calls = viewed.json("slowest").at("slowest");
  REQUIRE(calls.size() == 3);
  CHECK(calls.at(0).at("flags") == Json({"across_gap"}));
  CHECK(calls.at(1).at("flags") == Json({"across_gap"}));
  CHECK_FALSE(calls.at(2).contains("flags"));
}

TEST_CASE("slowest: a call is not across a gap that it begins or ends in") {
  RecordScript script;
  const ThreadIndex t = script.program(7, "p");
  script.stack(t, 0, {});
  script.enter(t, 20, "f");
  script.add(t, 500, ARCTRACE_TYPE_LOST, lost_body(ARCTRACE_LOST_FULL, 70, 30));
  script.stack(t, 500, {"g"});
  script.exit(t, 600);
  Viewed viewed(script);
  viewed.settings.functions = {"*"};
  const Json calls = viewed.json("slowest").at("slowest");
  REQUIRE(calls.size() == 2);
  CHECK(calls.at(0).at("flags") == Json({"exit_lost"}));
  CHECK(calls.at(1).at("flags") == Json({"entry_lost"}));
}

TEST_CASE("slowest: arguments and what is unusual with a call") {
  RecordScript script;
  const ThreadIndex t = script.program(7, "p");
  script.enter(t, 0, "open");
  const RecordScript open = script;
  Viewed viewed(open);
  viewed.settings.functions = {"*"};
  CHECK(viewed.text("slowest").find("open [open at the end]\n") != std::string::npos);
}

TEST_CASE("slowest: what one call did is no average of many shorter ones") {
  RecordScript s;
  const ThreadIndex a = s.program(10, "one");
  const auto call = [&](int64_t at_ns, int64_t took_ns) {
    s.enter(a, at_ns, "f");
    s.enter(a, at_ns, "slow");
    s.exit(a, at_ns + took_ns);
    s.exit(a, at_ns + took_ns);
  };
  for (int64_t i = 0; i < 400; ++i) call(1'000 * i, i % 100 == 0 ? 200 : 100);
  call(1'000'000, 5'000);
  Viewed viewed(s);
  viewed.settings.functions = {"f"};
  const Json one = viewed.json("slowest").at("why").at(0);
  CHECK(one.at("slow_calls") == 1);
  CHECK(one.at("slow_ns") == 5'000);
  CHECK(one.at("causes").at(0).at("more_ns") == 4'900);
  // Two calls that are about as slow as each other are compared together.
  call(1'100'000, 3'000);
  CHECK(viewed.json("slowest").at("why").at(0).at("slow_calls") == 2);
}

TEST_CASE("histogram: calls by the powers of two of their times") {
  const RecordScript script = calls_of_f();
  Viewed viewed(script);
  viewed.settings.functions = {"f"};
  CHECK(viewed.text("histogram") == R"(
f [open]: 4 calls, of which 3 have a known time
  avg 110 ns, min 10 ns, p50 20 ns, max 300 ns
         From        Below       Calls
         8 ns        16 ns           1  ████████████████████████████████████████
        16 ns        32 ns           1  ████████████████████████████████████████
        32 ns        64 ns           -
        64 ns       128 ns           -
       128 ns       256 ns           -
       256 ns       512 ns           1  ████████████████████████████████████████
)");
  const Json row = viewed.json("histogram").at("histograms").at(0);
  CHECK(row.at("avg_ns") == 110);
  CHECK(row.at("p90_ns").is_null());
  CHECK(row.at("buckets").size() == 6);
}

TEST_CASE("graph: the paths to a function, and what it calls") {
  const RecordScript script = calls_of_f();
  Viewed viewed(script);
  viewed.settings.functions = {"f"};
  CHECK(viewed.text("graph") == R"(
f [open]: 4 calls
          Calls   %Self  %Total         Self        Total  Path
              1     2.8    42.6        20 ns       300 ns  main > g > f
              3     5.0     5.0        35 ns        35 ns  main > f [open]
 Lv       Calls   %Self  %Total         Self        Total  Called in it
  0           4     7.8    47.5        55 ns       335 ns  f [open]
  1           2    39.7    39.7       280 ns       280 ns    h [open]
)");
}
