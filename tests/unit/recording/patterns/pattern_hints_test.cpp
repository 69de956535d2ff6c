// What patterns of functions are told by that match nothing.
#include "src/recording/patterns/pattern_hints.hpp"

#include <doctest/doctest.h>

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
