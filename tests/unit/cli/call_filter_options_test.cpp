#include "reader/cli/call_filter_options.hpp"

#include <doctest/doctest.h>

namespace arctrace::cli {
namespace {

std::string problem_with(const std::string& pattern) {
  CallFilterOptions options;
  options.chosen = {pattern};
  const auto problem = find_problem(options);
  return problem ? problem->text() : "";
}

TEST_CASE("a malformed pattern is shown with its place") {
  CHECK(problem_with("str*") == "");
  CHECK(problem_with("[a-c]x\\[") == "");
  CHECK(problem_with("[]]") == "");
  CHECK(problem_with("re:^a(b|c)$") == "");
  CHECK(problem_with("") == "-F \"\": an empty pattern\n  \n  ^");
  CHECK(problem_with("operator[]") ==
        "-F \"operator[]\": no ] to this [; \\[ is the character\n"
        "  operator[]\n"
        "          ^");
  CHECK(problem_with("re:a(b)(c") ==
        "-F \"re:a(b)(c\": Unmatched ( or \\(\n"
        "  re:a(b)(c\n"
        "         ^");
  CHECK(problem_with("re:") == "-F \"re:\": nothing behind re:\n  re:\n     ^");
  CHECK(problem_with("x\\") ==
        "-F \"x\\\\\": nothing behind the backslash\n  x\\\\\n   ^");
}

TEST_CASE("a malformed time is shown with its place") {
  CallFilterOptions options;
  options.time = "5parsecs";
  CHECK(find_problem(options)->text() ==
        "-t \"5parsecs\": not a time such as 1.5ms, 20us, 300ns or 2s\n  5parsecs\n   ^");
  options.time = "-1us";
  CHECK(find_problem(options)->text() == "-t \"-1us\": is negative\n  -1us\n  ^");
}

TEST_CASE("patterns reach the shim in the order of their bits") {
  CallFilterOptions options;
  CHECK(options.is_empty());
  CHECK(*encode(options) == "");
  options.modules = {"lib*"};
  options.left_out = {"100%;"};
  options.chosen = {"a", "re:b|c"};
  options.depth = 3;
  options.time = "2us";
  options.size = 64;
  CHECK_FALSE(options.is_empty());
  CHECK(
      *encode(options) ==
      ";filter=a;filter=re:b|c;notrace=100%25%3B;module=lib*;depth=3;time=2000;size=64");
  const std::vector<std::string> lines = unmatched_patterns(options, 0b0101, "/");
  CHECK(lines == std::vector<std::string>{"no function matches -F re:b|c",
                                          "no function of a module like -L lib*"});
  options.chosen = std::vector<std::string>(65, "a");
  CHECK_FALSE(encode(options).ok());
  options.chosen = {std::string(5000, 'a')};
  CHECK_FALSE(encode(options).ok());
}

TEST_CASE("near names come from the program's own functions") {
  CallFilterOptions options;
  options.chosen = {"mainn", "abort_*_nobody"};
  const std::vector<std::string> lines = unmatched_patterns(options, 0, "/proc/self/exe");
  REQUIRE(lines.size() == 2);
  CHECK(lines[0].find("\"main\"") != std::string::npos);
}

}  // namespace
}  // namespace arctrace::cli
