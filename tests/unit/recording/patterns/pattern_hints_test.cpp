// Hints about patterns of functions that match nothing.
#include <doctest/doctest.h>

#include "src/recording/patterns/function_pattern.hpp"

namespace arctrace::recording {
namespace {

TEST_CASE("the plain part of a pattern") {
  CHECK(plain_part("str*") == "str");
  CHECK(plain_part("re:^str(len|dup)$") == "str(len|dup)");
  CHECK(plain_part("a[bc]?\\+") == "abc");
  CHECK(plain_part("") == "");
}

}  // namespace
}  // namespace arctrace::recording
