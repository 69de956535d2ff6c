// Suggestions for mistyped names.
#include "reader/cli/options/near_names.hpp"

#include <doctest/doctest.h>

namespace arctrace::cli {
namespace {

const std::vector<std::string> kNames = {"record", "report", "dump", "info", "check"};

TEST_CASE("names that differ by a few letters are near") {
  CHECK(near_names("dmup", kNames) == "; did you mean \"dump\"?");
  CHECK(near_names("dxyz", kNames) == "");
  CHECK(near_names("dunp", kNames) == "; did you mean \"dump\"?");
  CHECK(near_names("DUMP", kNames) == "; did you mean \"dump\"?");
  CHECK(near_names("repord", kNames) == "; did you mean \"record\" or \"report\"?");
  CHECK(near_names("xyzzy", kNames) == "");
  CHECK(near_names("", kNames) == "");
  CHECK(near_names("dump", {}) == "");
}

TEST_CASE("so are those that begin with the name") {
  CHECK(near_names("re", kNames) == "; did you mean \"record\" or \"report\"?");
  CHECK(near_names("inf", kNames) == "; did you mean \"info\"?");
}

TEST_CASE("suggestions are few, and cheap for long names") {
  const std::vector<std::string> many = {"a1", "a2", "a3", "a4", "a5", "a6", "a7"};
  CHECK(near_names("a", many) ==
        "; did you mean \"a1\" or \"a2\" or \"a3\" or \"a4\" or \"a5\" or \"a6\"?");
  CHECK(near_names(std::string(1'000'000, 'x'), kNames) == "");
  const std::string lengthy(64, 'y');
  CHECK(near_names(lengthy, {lengthy + "z"}) == "; did you mean \"" + lengthy + "z\"?");
}

TEST_CASE("the plain part of a pattern") {
  CHECK(plain_part("str*") == "str");
  CHECK(plain_part("re:^str(len|dup)$") == "str(len|dup)");
  CHECK(plain_part("a[bc]?\\+") == "abc");
  CHECK(plain_part("") == "");
}

}  // namespace
}  // namespace arctrace::cli
