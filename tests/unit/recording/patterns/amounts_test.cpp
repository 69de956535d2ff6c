// Sizes and times as people write them.
#include <doctest/doctest.h>

#include <string>

#include "src/recording/patterns/arg_spec.hpp"

namespace arctrace::recording {
namespace {

TEST_CASE("sizes are numbers of bytes, or of powers of 1024") {
  CHECK(*parse_size("0") == 0);
  CHECK(*parse_size("512") == 512);
  CHECK(*parse_size("64k") == 64u << 10);
  CHECK(*parse_size("64K") == 64u << 10);
  CHECK(*parse_size("64kb") == 64u << 10);
  CHECK(*parse_size("64KiB") == 64u << 10);
  CHECK(*parse_size("100b") == 100);
  CHECK(*parse_size("1.5G") == uint64_t{3} << 29);
  CHECK(*parse_size("2m") == 2u << 20);
  CHECK(*parse_size("3t") == uint64_t{3} << 40);
  CHECK(*parse_size("1p") == uint64_t{1} << 50);
  CHECK(*parse_size("7e") == uint64_t{7} << 60);
  CHECK(*parse_size("1.7k") == 1740);  // rounded down
  for (const char* wrong : {"", "k", "-1", "+1", "1 k", " 1", "1kk", "1x", "0x10",
                            "1.2.3k", "nan", "inf", "1e3", "64kib2"}) {
    CAPTURE(std::string(wrong));
    CHECK(parse_size(wrong).status().message() ==
          "\"" + std::string(wrong) + "\" is not a size such as 64k or 1.5G");
  }
  CHECK(parse_size("8e").status().message() == "\"8e\" is too large");
  CHECK(parse_size("99999999999999999999").status().message() ==
        "\"99999999999999999999\" is too large");
}

TEST_CASE("times have a unit") {
  CHECK(*parse_time_ns("300ns") == 300);
  CHECK(*parse_time_ns("20us") == 20'000);
  CHECK(*parse_time_ns("1.5ms") == 1'500'000);
  CHECK(*parse_time_ns("2s") == 2'000'000'000);
  CHECK(*parse_time_ns("1m30s") == 90'000'000'000);
  CHECK(*parse_time_ns("-1us") == -1000);
  CHECK(*parse_time_ns("0") == 0);
  for (const char* wrong : {"", "5", "ms", "1 ms", "1ms~", "x"}) {
    CAPTURE(std::string(wrong));
    CHECK(parse_time_ns(wrong).status().message() ==
          "\"" + std::string(wrong) +
              "\" is not a time such as 1.5ms, 20us, 300ns or 2s");
  }
}

}  // namespace
}  // namespace arctrace::recording
