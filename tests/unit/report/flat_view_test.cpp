// The view `flat`: a row for each function.
#include "reader/report/views.hpp"
#include "tests/unit/report/viewed.hpp"

using namespace arctrace::reader;
using namespace arctrace::testing;

TEST_CASE("flat: a line for each function") {
  const RecordScript script = treetest();
  Viewed viewed(script);
  CHECK(viewed.text("flat") == R"(
1 thread: 100 us
       Calls   %Self  %Total         Self     Total us    Ind  Name
           1       -     100            -          100      1  main
           1       -    70.0            -           70      2  mainB
           1    40.0    40.0      40.0 us           40      3  mainBB
           1       -    30.0            -           30      4  mainA
           1    30.0    30.0      30.0 us           30      5  mainBA
           1    20.0    20.0      20.0 us           20      6  mainAB
           1    10.0    10.0      10.0 us           10      7  mainAA
)");
  const Json json = viewed.json("flat");
  const Json& row = json.at("functions").at(2);
  CHECK(row.at("name") == "mainBB");
  CHECK(row.at("module") == "");
  CHECK(sums_of(row) == Sums{1, 40'000, 40'000});
}

TEST_CASE("flat: sorted, limited, by thread") {
  const RecordScript script = treetest();
  Viewed viewed(script);
  viewed.settings.options.sort = SortKey::kSelf;
  viewed.settings.options.limit = 2;
  const Json rows = viewed.json("flat").at("functions");
  REQUIRE(rows.size() == 2);
  CHECK(rows.at(0).at("name") == "mainBB");
  CHECK(rows.at(1).at("name") == "mainBA");
  CHECK(viewed.text("flat").find("(5 rows not shown)") != std::string::npos);
  const Json threads = viewed.json("flat", Grouping::kThread).at("threads");
  CHECK(threads.at(0).at("functions").size() == 2);
}

TEST_CASE("recursion is not counted twice") {
  RecordScript script;
  const ThreadIndex t = script.program(1, "p");
  script.enter(t, 0, "f");
  script.enter(t, 1, "g");
  script.enter(t, 3, "f");
  script.enter(t, 6, "g");
  script.exit(t, 10);
  script.exit(t, 11);
  script.exit(t, 12);
  script.exit(t, 20);
  Viewed viewed(script);
  const Json rows = viewed.json("flat").at("functions");
  CHECK(rows.at(0).at("name") == "f");
  CHECK(sums_of(rows.at(0)) == Sums{2, 1 + 3 + 1 + 8, 20});
  CHECK(rows.at(0).at("recursion") == 2);
  CHECK(sums_of(rows.at(1)) == Sums{2, 2 + 4 + 1, 11});
  CHECK(viewed.text("flat").find("f [recursion to level 2]") != std::string::npos);
}

TEST_CASE("rows say which functions are not complete, and since when") {
  RecordScript script = treetest();
  script.definitions.mutable_process(0)->switched_off = {{script.key("mainAA"), 12'000}};
  script.definitions.mutable_live_filters().add(50'000, std::string("-mainB\0", 7));
  Viewed viewed(script);
  CHECK(viewed.text("flat") == R"(
1 thread: 100 us
       Calls   %Self  %Total         Self     Total us    Ind  Name
           1       -     100            -          100      1  main
           1       -    70.0            -           70      2  mainB [until 50.0 us]
           1    40.0    40.0      40.0 us           40      3  mainBB [partly from 50.0 us on]
           1       -    30.0            -           30      4  mainA
           1    30.0    30.0      30.0 us           30      5  mainBA [partly from 50.0 us on]
           1    20.0    20.0      20.0 us           20      6  mainAB
           1    10.0    10.0      10.0 us           10      7  mainAA [until 12.0 us]
  [until], [partly]: calls were left out, and their time is their callers' own: switched off from 12.0 us on; ctl -N mainB from 50.0 us on
)");
  const Json rows = viewed.json("flat").at("functions");
  CHECK(!rows.at(0).contains("recorded"));
  CHECK(rows.at(1).at("recorded") ==
        Json{{"until_ns", 50'000}, {"until_by", "ctl -N mainB"}});
  CHECK(rows.at(2).at("recorded").at("partly") ==
        Json::array({{{"by", "ctl -N mainB"}, {"from_ns", 50'000}, {"to_ns", nullptr}}}));
  CHECK(rows.at(6).at("recorded").at("until_by") == "switched off");

  for (const char* view : {"tree", "arcs", "kinds", "histogram"}) {
    CAPTURE(view);
    viewed.settings.functions = {"*"};
    const std::string text = viewed.text(view);
    CHECK(text.find("mainAA [until 12.0 us]") != std::string::npos);
    CHECK(text.find("mainAB [") == std::string::npos);
    CHECK(text.find("  [until], [partly]: ") != std::string::npos);
    // The rows of `kinds` are kinds of functions, to which these functions do not belong.
    CHECK((text.find("\nCalls that were left out, and are in no row:\n") !=
           std::string::npos) == (std::string(view) == "kinds"));
  }
  const Json root = viewed.json("tree").at("threads").at(0).at("root");
  const Json& main = root.at("children").at(0);
  CHECK(!main.contains("recorded"));
  CHECK(main.at("children").at(0).at("name") == "mainB");
  CHECK(main.at("children").at(0).at("recorded").at("until_ns") == 50'000);
}
