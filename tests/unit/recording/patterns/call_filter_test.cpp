// The filter of calls: the message about a malformed pattern, and the text that the shim
// gets for a valid one.
#include <doctest/doctest.h>

#include <memory>

#include "src/recording/patterns/filters.hpp"

namespace arctrace::recording {
namespace {

std::string problem_with(const std::string& pattern) {
  CallFilterOptions options;
  options.filter = {pattern};
  const auto problem = find_problem(options);
  return problem ? problem->text() : "";
}

TEST_CASE("a malformed pattern is shown with its offset") {
  CHECK(problem_with("str*") == "");
  CHECK(problem_with("[a-c]x\\[") == "");
  CHECK(problem_with("[]]") == "");
  CHECK(problem_with("re:^a(b|c)$") == "");
  CHECK(problem_with("") == "-F \"\": an empty pattern");
  CHECK(problem_with("operator[]") ==
        "-F \"operator[]\": no ] to this [; a backslash before it makes it plain\n"
        "  operator[]\n"
        "          ^");
  CHECK(problem_with("a[b\\]") ==
        "-F \"a[b\\\\]\": no ] to this [; a backslash before it makes it plain\n"
        "  a[b\\\\]\n"
        "   ^");
  CHECK(problem_with("[[:alpha:]]*") ==
        "-F \"[[:alpha:]]*\": no classes as in [[:alpha:]]; [a-z] is a range\n"
        "  [[:alpha:]]*\n"
        "   ^");
  CHECK(problem_with("re:a(b)(c") ==
        "-F \"re:a(b)(c\": Unmatched ( or \\(\n"
        "  re:a(b)(c\n"
        "         ^");
  CHECK(problem_with("re:") == "-F \"re:\": nothing after re:\n  re:\n     ^");
  CHECK(problem_with("x\\") ==
        "-F \"x\\\\\": nothing after the backslash\n  x\\\\\n   ^");
}

TEST_CASE("functions of Python programs cannot be patched") {
  CallFilterOptions options;
  options.patch = {"py:*"};
  CHECK(find_problem(options)->text() ==
        "-P \"py:*\": a Python program's functions are not patched: they are recorded by "
        "python3 -m arctrace_python PROGRAM.py\n  py:*\n  ^");
  options.patch = {"py::init"};  // a C++ namespace
  options.filter = {"py:*"};     // the names that the module gives them
  CHECK_FALSE(find_problem(options).has_value());
}

TEST_CASE("a malformed time is shown with its offset") {
  CallFilterOptions options;
  options.time = "5parsecs";
  CHECK(find_problem(options)->text() ==
        "-t \"5parsecs\": not a time such as 1.5ms, 20us, 300ns or 2s\n  5parsecs\n   ^");
  options.time = "-1us";
  CHECK(find_problem(options)->text() == "-t \"-1us\": is negative\n  -1us\n  ^");
}

std::string spec_problem(const std::string& spec, bool of_result = false) {
  CallFilterOptions options;
  (of_result ? options.retvals : options.args) = {spec};
  const auto problem = find_problem(options);
  return problem ? problem->text() : "";
}

TEST_CASE("a malformed arg or retval is shown with its offset") {
  CHECK(spec_problem("open@arg1/s,arg2/x32") == "");
  CHECK(spec_problem("re:^a@b$@arg1") == "");
  CHECK(spec_problem("open@retval/i32", true) == "");
  CHECK(spec_problem("open") == "");
  CHECK(spec_problem("open", true) == "");
  CHECK(spec_problem("@arg1") == "-A \"@arg1\": an empty pattern\n  @arg1\n  ^");
  CHECK(spec_problem("open@arg1/s,arg15") ==
        "-A \"open@arg1/s,arg15\": not a number from 1 to 14\n"
        "  open@arg1/s,arg15\n"
        "                 ^");
  CHECK(spec_problem("f@arg1/i13") ==
        "-A \"f@arg1/i13\": not a size: 8 16 32 64\n  f@arg1/i13\n          ^");
  const auto column = [](const std::string& text) {
    return text.size() - text.rfind('\n') - 4;
  };
  CHECK(column(spec_problem("f@")) == 2);
  CHECK(column(spec_problem("f@arg1,")) == 7);
  CHECK(column(spec_problem("f@arg")) == 5);
  CHECK(column(spec_problem("f@arg1/")) == 7);
  CHECK(column(spec_problem("f@arg1/q")) == 7);
  CHECK(column(spec_problem("f@arg1/s8")) == 8);
  CHECK(spec_problem("f@arg1/f").find("floating-point") != std::string::npos);
  for (const char* spec : {"f@fparg1", "f@fparg8/f32", "f@fparg1/64", "f@arg1/S"}) {
    CHECK(spec_problem(spec) == "");
  }
  CHECK(spec_problem("f@retval/f64", true) == "");
  CHECK(column(spec_problem("f@fparg17")) == 7);
  CHECK(column(spec_problem("f@fparg1/s")) == 9);
  CHECK(column(spec_problem("f@fparg1/80")) == 9);
  CHECK(column(spec_problem("f@fparg1/f16")) == 10);
  CHECK(column(spec_problem("f@arg1/S8")) == 8);
  CHECK(column(spec_problem("f@arg1,arg1,arg1,arg1,arg1,arg1,arg1,arg1,arg1")) == 42);
  CHECK(spec_problem("f@retval").find("not an argument") != std::string::npos);
  CHECK(spec_problem("f@arg1", true).find("not retval") != std::string::npos);
  CHECK(column(spec_problem("f@retval,retval", true)) == 9);
  CHECK(column(spec_problem("a[@arg1")) == 1);
}

std::string encoded(const CallFilterOptions& options) {
  const auto encoder = std::make_unique<shim::OptionsEncoder>();
  encode(options, *encoder);
  CHECK(encoder->overflow() == shim::OptionsEncoder::Overflow::kNone);
  return std::string(encoder->text());
}

TEST_CASE("patterns reach the shim in the order of their bits") {
  CallFilterOptions options;
  CHECK(options.is_empty());
  CHECK(encoded(options) == "");
  CallFilterOptions typed;
  typed.args = {"f", "f@fparg2/32,arg1/S,arg2/b"};
  typed.retvals = {"f", "f@retval/f"};
  CHECK(encoded(typed) == "args=A:f;args=2v401S802w10:f;args=R:f;args=0v80:f");
  options.modules = {"lib*"};
  options.notrace = {"100%;"};
  options.filter = {"a", "re:b|c"};
  options.depth = 3;
  options.time = "2us";
  options.size = 64;
  CHECK_FALSE(options.is_empty());
  CallFilterOptions saving;
  saving.entry_only = {"save*"};
  CHECK_FALSE(saving.is_empty());
  CHECK(encoded(saving) == "entryonly=save*");
  CHECK(encoded(options) ==
        "filter=a;filter=re:b|c;notrace=100%25%3B;module=lib*;depth=3;time=2000;size=64");
  options.args = {"f;@arg1/s,arg2/x32,arg3"};
  options.retvals = {"g@retval/i32"};
  options.auto_args = true;
  CHECK(encoded(options).find(";args=1h802d403b80:f%3B;args=0b40:g;autoargs=yes;") !=
        std::string::npos);
}

}  // namespace
}  // namespace arctrace::recording
