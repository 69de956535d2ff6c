// The table of auto-args has in each row what the shim and the command rely on.
#include "src/shim_protocol/auto_args.hpp"

#include <doctest/doctest.h>

#include <cstring>
#include <iterator>
#include <string>

#include "src/shim_protocol/call_kinds.hpp"

namespace arctrace::shim {

TEST_CASE("auto-args: each function has one row, in the order of names") {
  for (size_t i = 1; i < std::size(kAutoArgsTable); ++i) {
    CAPTURE(std::string(kAutoArgsTable[i].name.text));
    CHECK(std::strcmp(kAutoArgsTable[i - 1].name.text, kAutoArgsTable[i].name.text) < 0);
  }
}

TEST_CASE("auto-args: arguments from the first on, then at most one return value") {
  for (const AutoArgs& function : kAutoArgsTable) {
    CAPTURE(std::string(function.name.text));
    const size_t size = std::strlen(function.arg_specs);
    CHECK(size > 0);
    CHECK(size % kArgSpecSize == 0);
    unsigned args = 0;
    bool has_retval = false;
    for (size_t at = 0; at < size; at += kArgSpecSize) {
      arctrace_shim_arg_spec spec{};
      REQUIRE(decode_arg_spec(function.arg_specs + at, spec));
      CHECK_FALSE(has_retval);
      has_retval = spec.argument == 0;
      if (has_retval) continue;
      ++args;
      CHECK(spec.failure == ARCTRACE_SHIM_FAILS_NEVER);
      // printf's arguments before its format need no record.
      const bool is_checked = std::strstr(function.name.text, "printf_chk") != nullptr;
      CHECK((spec.argument == args || is_checked));
    }
    CHECK(args <= ARCTRACE_SHIM_ARGUMENTS_MAX);
    CHECK(args <= ARCTRACE_SHIM_RECORDED_ARGS_MAX);
    if (call_kind(function.name.text) == CallKind::kLast) CHECK_FALSE(has_retval);
    CHECK(call_kind(function.name.text) != CallKind::kSkipped);
  }
}

}  // namespace arctrace::shim
