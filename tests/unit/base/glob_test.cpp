// Compares globs with libc's fnmatch on random patterns, and tests the faults that are
// found in them.
#include "src/base/glob.hpp"

#include <doctest/doctest.h>
#include <fnmatch.h>

#include <cstdlib>
#include <random>
#include <string>

#include "tests/support/seed.hpp"

using arctrace::check_glob;
using arctrace::glob_matches;
using arctrace::GlobFault;

namespace {

// There are few letters, so that they match now and then.
char letter(std::mt19937_64& random) { return "abcd-!]"[random() % 7]; }

std::string random_set(std::mt19937_64& random) {
  std::string set = random() % 3 == 0 ? "[!" : "[";
  if (random() % 8 == 0) set += ']';
  for (auto n = 1 + random() % 3; n > 0; --n) {
    set += "abcd"[random() % 4];
    if (random() % 3 == 0) set += std::string("-") + "abcd"[random() % 4];
  }
  return set + "]";
}

std::string random_glob(std::mt19937_64& random) {
  std::string glob;
  for (auto n = random() % 8; n > 0; --n) {
    switch (random() % 6) {
      case 0:
        glob += '*';
        break;
      case 1:
        glob += '?';
        break;
      case 2:
        glob += random_set(random);
        break;
      case 3:
        glob += std::string("\\") + "*?[ab\\"[random() % 6];
        break;
      default:
        glob += letter(random);
    }
  }
  return glob;
}

}  // namespace

TEST_CASE("globs match as fnmatch's do") {
  std::mt19937_64 random(arctrace::testing::test_seed());
  unsigned matched = 0;
  for (int i = 0; i < 50'000; ++i) {
    const std::string glob = random_glob(random);
    std::string text;
    for (auto n = random() % 7; n > 0; --n) text += letter(random);
    const bool expected = fnmatch(glob.c_str(), text.c_str(), 0) == 0;
    matched += expected ? 1 : 0;
    INFO("glob " << glob << " text " << text);
    REQUIRE(glob_matches(glob, text) == expected);
    REQUIRE((check_glob(glob).fault == GlobFault::kNone || !expected));
  }
  CHECK(matched > 1000);
}

TEST_CASE("the elements of a glob") {
  CHECK(glob_matches("main", "main"));
  CHECK_FALSE(glob_matches("main", "main2"));
  CHECK_FALSE(glob_matches("main2", "main"));
  CHECK(glob_matches("ma?n*", "mainAB"));
  CHECK(glob_matches("*B", "mainAB"));
  CHECK_FALSE(glob_matches("*C*", "mainAB"));
  CHECK(glob_matches("a*b*c", "aXbXbc"));
  CHECK(glob_matches("[ab]*", "bc"));
  CHECK_FALSE(glob_matches("[ab]*", "cb"));
  CHECK(glob_matches("[!a-c]", "d"));
  CHECK_FALSE(glob_matches("[^a-c]", "b"));
  CHECK(glob_matches("[a-]", "-"));
  CHECK(glob_matches("[-a]", "-"));
  CHECK(glob_matches("[]]", "]"));
  CHECK_FALSE(glob_matches("[!]]", "]"));
  CHECK_FALSE(glob_matches("[c-a]", "b"));
  CHECK(glob_matches("[\\]]", "]"));
  CHECK(glob_matches("operator\\[]", "operator[]"));
  CHECK_FALSE(glob_matches("operator[]", "operator[]"));
  CHECK(glob_matches("\\*", "*"));
  CHECK_FALSE(glob_matches("\\*", "a"));
  CHECK(glob_matches("[\x80-\xff]?", "\xc3\xa9"));  // bytes, which are not signed
  CHECK(glob_matches("a*", std::string_view("a\0b", 3)));
}

TEST_CASE("incomplete globs match nothing") {
  for (const char* glob : {"[", "[a", "[!", "[]", "[a-", "\\", "a\\"}) {
    CHECK_FALSE(glob_matches(glob, "a"));
    CHECK_FALSE(glob_matches(glob, "["));
    CHECK(check_glob(glob).fault != GlobFault::kNone);
  }
  CHECK(glob_matches("", ""));
  CHECK(glob_matches("***", ""));
  CHECK_FALSE(glob_matches("", "a"));
}

TEST_CASE("a fault is found at its offset") {
  const auto is = [](const char* glob, GlobFault fault, size_t offset) {
    INFO(glob);
    CHECK(check_glob(glob).fault == fault);
    CHECK(check_glob(glob).offset == offset);
  };
  is("a*[b-c]?\\[[]][!]x][a-]", GlobFault::kNone, 0);
  is("a*[b", GlobFault::kOpenBracket, 2);
  is("[a\\]", GlobFault::kOpenBracket, 0);
  is("[b]a\\", GlobFault::kLastBackslash, 4);
  is("x[[:alpha:]]", GlobFault::kClass, 2);
  is("[[=a=]]", GlobFault::kClass, 1);
  is("[[.a.]]", GlobFault::kClass, 1);
  CHECK_FALSE(glob_matches("[[:alpha:]]", "a"));
  CHECK_FALSE(glob_matches("[[:alpha:]]", "[]"));
  CHECK(glob_matches("[[a]", "["));
}

TEST_CASE("a hostile glob costs no more than its length by the name's") {
  std::string glob;
  for (int i = 0; i < 500; ++i) glob += "*a";
  CHECK_FALSE(glob_matches(glob + "b", std::string(1024, 'a')));
  CHECK_FALSE(glob_matches(std::string(1'000'000, '*') + "b", std::string(1024, 'a')));
  CHECK_FALSE(
      glob_matches("*[" + std::string(10'000, 'b') + "]", std::string(1024, 'a')));
  CHECK(glob_matches(std::string(1'000'000, 'a'), std::string(1'000'000, 'a')));
}
