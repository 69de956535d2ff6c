// The table of record types agrees with format.h.
#include "reader/trace/record_types.hpp"

#include <doctest/doctest.h>

namespace arctrace::reader {
namespace {

TEST_CASE("names") {
  CHECK(type_name(ARCTRACE_TYPE_ENTER) == "ENTER");
  CHECK(type_name(ARCTRACE_TYPE_CHILD_STATUS) == "CHILD_STATUS");
  CHECK(type_name(14).empty());
  CHECK(type_name(0x7FFF).empty());
  CHECK(type_of_name("exit_named") == ARCTRACE_TYPE_EXIT_NAMED);
  CHECK(type_of_name("100") == 100);
  CHECK(type_of_name("32768") == std::nullopt);
  CHECK(type_of_name("enters") == std::nullopt);
}

}  // namespace
}  // namespace arctrace::reader
