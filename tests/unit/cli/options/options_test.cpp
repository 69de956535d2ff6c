// The parser of ranges, and the options that several subcommands share.
#include "reader/cli/options/options.hpp"

#include <doctest/doctest.h>

#include "tests/unit/cli/options/parsed.hpp"

namespace arctrace::cli {
namespace {

using testing::parse_error;

TEST_CASE("ranges may be open") {
  CHECK(parse_time_range("1us~2us")->from_ns == 1000);
  CHECK(parse_time_range("1us~2us")->until_ns == 2000);
  CHECK(parse_time_range("2us~2us")->from_ns == 2000);
  CHECK(parse_time_range("-1us~2us")->from_ns == -1000);
  CHECK(parse_time_range("~2us")->from_ns == INT64_MIN);
  CHECK(parse_time_range("1us~")->until_ns == INT64_MAX);
  CHECK(parse_time_range("~")->until_ns == INT64_MAX);
  CHECK(parse_time_range("1us").status().message() ==
        "\"1us\" is not a range START~STOP such as 1.5ms~2s, or -2s~");
  CHECK(parse_time_range("2us~1us").status().message() ==
        "\"2us~1us\" ends before it starts");
  CHECK(parse_time_range("1.5~2")->from_ns == 1'500'000'000);
  CHECK(parse_time_range("1.5~2")->until_ns == 2'000'000'000);
  CHECK(parse_time_range("x~2").status().message() ==
        "\"x\" is not a time such as 1.5ms, 20us, 300ns or 2s");
  CHECK_FALSE(parse_time_range("1us~2us~3us").ok());
}

TEST_CASE("negative ends of ranges count from the end of the trace") {
  TimeRange range = *parse_time_range("-2s~");
  CHECK(is_from_end(range.from_ns));
  CHECK_FALSE(is_from_end(range.until_ns));
  count_from_end(5'000'000'000, range);
  CHECK(range.from_ns == 3'000'000'000);
  CHECK(range.until_ns == INT64_MAX);
  range = *parse_time_range("~-0.5");
  count_from_end(5'000'000'000, range);
  CHECK(range.from_ns == INT64_MIN);
  CHECK(range.until_ns == 4'500'000'000);
  range = *parse_time_range("1s~-1s");  // which end is earlier is not known yet
  CHECK(range.until_ns == -1'000'000'000);
  CHECK_FALSE(parse_time_range("-1s~-2s").ok());
}

TEST_CASE("validators of numbers") {
  const auto problem = [](const CLI::Validator& validator, std::string text) {
    return validator(text);
  };
  CHECK(problem(from_to(1, 100), "1") == "");
  CHECK(problem(from_to(1, 100), "100") == "");
  CHECK(problem(from_to(0, 1), "0.5") == "");
  for (const char* wrong : {"0", "101", "", "x", "nan", "inf", "1x"}) {
    CHECK(problem(from_to(1, 100), wrong) ==
          "\"" + std::string(wrong) + "\" is not a number from 1 to 100");
  }
  CHECK(problem(not_negative(), "0") == "");
  CHECK(problem(not_negative(), "7") == "");
  CHECK(problem(not_negative(), "-1") == "\"-1\" is negative");
  CHECK(problem(not_negative(), " \t-1") == "\" \t-1\" is negative");
  CHECK(problem(not_empty(), "x") == "");
  CHECK(problem(not_empty(), "") == "the value is empty");
}

TEST_CASE("words for messages") {
  CHECK(long_name("-o,--output") == "--output");
  CHECK(long_name("--output") == "--output");
  CHECK(either_of({"a"}) == "a");
  CHECK(either_of({"a", "b"}) == "a or b");
  CHECK(either_of({"a", "b", "c"}) == "a, b or c");
  CHECK(not_a_choice("xyz", {"text", "json"}) == "\"xyz\" is not text or json");
  CHECK(not_a_choice("jsn", {"text", "json"}) ==
        "\"jsn\" is not text or json; did you mean \"json\"?");
}

TEST_CASE("a choice is one of its words, in any case") {
  const auto parsed = [](const std::string& word) {
    OutputFormat format = OutputFormat::kText;
    CLI::App app;
    add_format_option(app, format);
    const std::string error = parse_error(app, {"--format", word});
    CHECK((error.empty() || format == OutputFormat::kText));
    return error.empty() ? std::string(format == OutputFormat::kJson ? "json" : "text")
                         : error;
  };
  CHECK(parsed("json") == "json");
  CHECK(parsed("JSON") == "json");
  CHECK(parsed("text") == "text");
  CHECK(parsed("xml") == "--format: \"xml\" is not text or json");
  CHECK(parsed("") == "--format: \"\" is not text or json");
  CHECK(parsed("0") == "--format: \"0\" is not text or json");
}

TEST_CASE("options that several subcommands have") {
  std::string file, name;
  recording::OutputFile output;
  TimeRange range;
  uint32_t size = 0;
  CLI::App app;
  add_file_option(app, file);
  add_output_option(app, output);
  add_time_range_option(app, range);
  add_size_option(app, "-s,--size", size, "help");
  CHECK(file == kDefaultFile);
  CHECK(output.path == kDefaultFile);
  CHECK_FALSE(output.is_named);
  CHECK(parse_error(app, {"in", "-o", "out", "-r", "1ms~", "-s", "4k"}) == "");
  CHECK(file == "in");
  CHECK(output.path == "out");
  CHECK(output.is_named);
  CHECK(range.from_ns == 1'000'000);
  CHECK(size == 4096);
  CHECK(parse_error(app, {"-o", ""}) == "--output: the value is empty");
  CHECK(parse_error(app, {"-r", "x"}) ==
        "--time-range: \"x\" is not a range START~STOP such as 1.5ms~2s, or -2s~");
  CHECK(parse_error(app, {"-s", "x"}) ==
        "--size: \"x\" is not a size such as 64k or 1.5G");
  CHECK(parse_error(app, {"-s", "4G"}) == "--size: \"4G\" is too large");
  CHECK(size == 4096);

  CLI::App session;
  add_session_option(session, name);
  CHECK(parse_error(session, {}) == "name is required");
  CHECK(parse_error(session, {"mine"}) == "");
  CHECK(name == "mine");
}

}  // namespace
}  // namespace arctrace::cli
