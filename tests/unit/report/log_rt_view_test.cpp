// The view `log-rt`, whose columns are those of JPROF.
#include "reader/report/log_rt_view.hpp"

#include "tests/unit/report/viewed.hpp"

using namespace arctrace::reader;
using namespace arctrace::testing;

TEST_CASE("log-rt: JPROF's columns") {
  const RecordScript script = treetest();
  Viewed viewed(script);
  CHECK(viewed.text("log-rt") == R"(LV CALLS CEE BASE DS IN NAME
0 1 1 0 0 0 treetest 7/7
1 1 2 0 0 0 main
2 1 2 0 0 0 mainB
3 1 0 40000 0 0 mainBB
3 1 0 30000 0 0 mainBA
2 1 2 0 0 0 mainA
3 1 0 20000 0 0 mainAB
3 1 0 10000 0 0 mainAA
)");
  const Json json = viewed.json("log-rt");
  CHECK(json.at("log_rt").size() == 8);
  CHECK(json.at("log_rt").at(3).at("base_ns") == 40'000);
  CHECK(json.at("log_rt").at(1).at("cee") == 2);
}
