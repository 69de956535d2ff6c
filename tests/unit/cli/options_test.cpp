#include "reader/cli/options/options.hpp"

#include <doctest/doctest.h>

#include "reader/cli/options/near_names.hpp"

namespace arctrace::cli {
namespace {

TEST_CASE("times have a unit") {
  CHECK(*parse_time_ns("300ns") == 300);
  CHECK(*parse_time_ns("20us") == 20'000);
  CHECK(*parse_time_ns("1.5ms") == 1'500'000);
  CHECK(*parse_time_ns("2s") == 2'000'000'000);
  CHECK(*parse_time_ns("-1us") == -1000);
  CHECK(*parse_time_ns("0") == 0);
  for (const char* wrong : {"", "5", "ms", "1 ms", "1ms~", "x"}) {
    CAPTURE(wrong);
    CHECK_FALSE(parse_time_ns(wrong).ok());
  }
}

TEST_CASE("ranges may be open") {
  CHECK(parse_time_range("1us~2us")->from_ns == 1000);
  CHECK(parse_time_range("1us~2us")->until_ns == 2000);
  CHECK(parse_time_range("~2us")->from_ns == INT64_MIN);
  CHECK(parse_time_range("1us~")->until_ns == INT64_MAX);
  CHECK(parse_time_range("~")->until_ns == INT64_MAX);
  CHECK_FALSE(parse_time_range("1us").ok());
  CHECK_FALSE(parse_time_range("2us~1us").ok());
  CHECK_FALSE(parse_time_range("1~2").ok());
}

TEST_CASE("near names") {
  const std::vector<std::string> names = {"record", "report", "dump", "info", "check"};
  CHECK(near_names("dmup", names) == "; did you mean \"dump\"?");
  CHECK(near_names("dxyz", names) == "");
  CHECK(near_names("dunp", names) == "; did you mean \"dump\"?");
  CHECK(near_names("DUMP", names) == "; did you mean \"dump\"?");
  CHECK(near_names("re", names) == "; did you mean \"record\" or \"report\"?");
  CHECK(near_names("repord", names) == "; did you mean \"record\" or \"report\"?");
  CHECK(near_names("xyzzy", names) == "");
  CHECK(near_names(std::string(1'000'000, 'x'), names) == "");
}

}  // namespace
}  // namespace arctrace::cli
