// Suggestions for mistyped names.
#include "src/base/near_names.hpp"

#include <doctest/doctest.h>

namespace arctrace {
namespace {

const std::vector<std::string> kNames = {"record", "report", "dump", "info", "check"};

TEST_CASE("names that differ by a few letters are near") {
  CHECK(near_names("dmup", kNames) == "; did you mean \"dump\"?");
  CHECK(near_names("dxyz", kNames) == "");
  CHECK(near_names("dunp", kNames) == "; did you mean \"dump\"?");
  CHECK(near_names("DUMP", kNames) == "; did you mean \"dump\"?");
  CHECK(near_names("--durtion", {"--duration", "--version"}) ==
        "; did you mean \"--duration\"?");
  CHECK(near_names("repord", kNames) == "; did you mean \"record\" or \"report\"?");
  CHECK(near_names("xyzzy", kNames) == "");
  CHECK(near_names("", kNames) == "");
  CHECK(near_names("dump", {}) == "");
}

TEST_CASE("so are those that begin with the name") {
  CHECK(near_names("re", kNames) == "; did you mean \"record\" or \"report\"?");
  CHECK(near_names("inf", kNames) == "; did you mean \"info\"?");
}

TEST_CASE("and those that contain it, or differ behind their scope") {
  const std::vector<std::string> names = {"app::slow_sort", "app::slow_sort", "sorted",
                                          "main"};
  CHECK(near_names("sort", names) == "; did you mean \"sorted\" or \"app::slow_sort\"?");
  CHECK(near_names("LOW_S", names) == "; did you mean \"app::slow_sort\"?");
  CHECK(near_names("slwo_sort", names) == "; did you mean \"app::slow_sort\"?");
  CHECK(near_names("or", names) == "");  // too short to be a part
}

TEST_CASE("suggestions are few, and cheap for long names") {
  const std::vector<std::string> many = {"a1", "a2", "a3", "a4", "a5", "a6", "a7"};
  CHECK(near_names("a", many) ==
        "; did you mean \"a1\" or \"a2\" or \"a3\" or \"a4\" or \"a5\" or \"a6\"?");
  // The nearest come first, wherever they are in the list, and stay when not all do.
  const std::vector<std::string> mixed = {"luaH_a",   "luaH_getstr", "luaH_geb",
                                          "luaH_get", "luaH_got",    "luaH_git",
                                          "luaH_gt",  "luaH_getint"};
  CHECK(
      near_names("luaH_getit", mixed).starts_with("; did you mean \"luaH_getint\" or "));
  CHECK(near_names(std::string(1'000'000, 'x'), kNames) == "");
  const std::string lengthy(64, 'y');
  CHECK(near_names(lengthy, {lengthy + "z"}) == "; did you mean \"" + lengthy + "z\"?");
}

}  // namespace
}  // namespace arctrace
