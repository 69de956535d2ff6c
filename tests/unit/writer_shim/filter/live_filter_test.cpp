// The live filter, and the table of functions with hooks, to which it is applied. A
// process reads the table only once, so its tests are one.
#include "writer_shim/filter/live_filter.hpp"

#include <doctest/doctest.h>

#include <memory>
#include <string>

#include "src/shim_protocol/options.hpp"
#include "tests/unit/writer_shim/fake_writer.hpp"
#include "tests/unit/writer_shim/filter/hooked_functions.hpp"
#include "writer_shim/filter/function_filter.hpp"
#include "writer_shim/filter/function_patterns.hpp"

namespace arctrace::shim {
namespace {

using namespace std::string_literals;

constexpr uint32_t kFiltered = ARCTRACE_SHIM_FILTERED_IN;
constexpr uint32_t kNotraced = ARCTRACE_SHIM_NOTRACE;
constexpr uint32_t kHidden = ARCTRACE_SHIM_HIDDEN;

// The flags after the present live filter.
uint32_t live_flags(const char* name, uint32_t at_start) {
  uint32_t flags = UINT32_MAX;
  uint32_t generation = 0;
  REQUIRE(apply_live_filter(name, at_start, flags, generation));
  CHECK(generation == fake_writer().live_generation);
  CHECK(generation == live_filter_generation());
  CHECK(fake_writer().followed_generation == generation);
  return flags;
}

template <class Function>
uintptr_t address_of(Function* function) {
  return reinterpret_cast<uintptr_t>(function);
}

}  // namespace

TEST_CASE("live filter: it replaces the patterns' flags, and nothing else") {
  start_live_filter(true);
  set_live_filter("+str*\0-*cpy\0"s);
  CHECK(live_flags("strlen", 0) == kFiltered);
  CHECK(live_flags("strcpy", kHidden) == (kFiltered | kNotraced | kHidden));
  CHECK(live_flags("memcpy.constprop.0", kFiltered) == kNotraced);
  CHECK(live_flags("free", kFiltered | kNotraced) == 0);
  set_live_filter("+work.isra.0\0"s);
  CHECK(live_flags("work.isra.0", 0) == kFiltered);
  CHECK(live_flags("work.isra.1", 0) == 0);
  CHECK(live_flags("work", 0) == 0);
  set_live_filter("+str*\0-*cpy\0"s);
  CHECK(fake_writer().filter_in_only == 1);
  set_live_filter("-*cpy\0"s);
  CHECK(live_flags("memcpy", 0) == kNotraced);
  CHECK(live_flags("free", kFiltered) == 0);
  CHECK(fake_writer().filter_in_only == 0);
}

TEST_CASE("live filter: empty, it is the one at the start") {
  for (const bool filter_in_only : {true, false}) {
    start_live_filter(filter_in_only);
    set_live_filter("");
    CHECK(live_flags("f", kFiltered | kHidden) == (kFiltered | kHidden));
    CHECK(fake_writer().filter_in_only == (filter_in_only ? 1 : 0));
  }
}

TEST_CASE("live filter: while it is being changed nothing follows it") {
  start_live_filter(false);
  fake_writer().followed_generation = 0;
  fake_writer().is_changing = true;
  uint32_t flags = 3;
  uint32_t generation = 5;
  CHECK_FALSE(apply_live_filter("f", 0, flags, generation));
  CHECK(flags == 3);
  CHECK(fake_writer().followed_generation == 0);
  fake_writer().is_changing = false;
}

TEST_CASE("live filter: texts that ctl does not write") {
  start_live_filter(false);
  set_live_filter("+a"s);  // its end is missing
  CHECK(live_flags("a", 0) == kFiltered);
  set_live_filter("\0\0+\0-a\0\0"s);  // nothing, and the empty name
  CHECK(live_flags("a", 0) == kNotraced);
  CHECK(fake_writer().filter_in_only == 1);
  set_live_filter(std::string(ARCTRACE_SHIM_LIVE_FILTER_MAX, '+'));
  CHECK(live_flags("a", 0) == 0);
  set_live_filter("+[\0+\\\0"s);
  CHECK(live_flags("[", 0) == 0);
}

TEST_CASE(
    "function filter: by address, from the symbols, and then from the live filter") {
  auto options = std::make_unique<ShimOptions>();
  decode_options(
      "filter=hooked_filtered;notrace=hooked_notraced;args=1b400b40:hooked_other",
      *options);
  set_patterns(*options);
  set_arg_options(*options);
  start_live_filter(true);
  set_live_filter("");
  read_function_symbols();

  const uintptr_t filtered = address_of(testing::hooked_filtered);
  const uintptr_t notraced = address_of(testing::hooked_notraced);
  const uintptr_t other = address_of(testing::hooked_other);
  CHECK(function_filter(filtered).flags == kFiltered);
  CHECK(function_filter(filtered).arg_specs == 0);
  CHECK(function_filter(notraced).flags == kNotraced);
  CHECK(function_filter(other).flags == 0);
  const uint32_t number = function_filter(other).arg_specs;
  REQUIRE(number != 0);
  CHECK(fake_writer().arg_specs[number].argument_count == 1);
  CHECK(function_filter(other + 1).flags == 0);
  CHECK(function_filter(other + 1).arg_specs == 0);

  const KnownFunction known = known_function(notraced);
  CHECK(known.address == notraced);
  CHECK(known.name == std::string("hooked_notraced"));
  CHECK(known.flags_at_start == kNotraced);
  CHECK(known_function(other).arg_specs == number);
  CHECK(known_function(other + 1).name == std::string());

  set_live_filter("+hooked_o*\0"s);
  CHECK(function_filter(filtered).flags == 0);
  CHECK(function_filter(notraced).flags == 0);
  CHECK(function_filter(other).flags == kFiltered);
  CHECK(function_filter(other).arg_specs == number);
  CHECK(known_function(notraced).flags_at_start == kNotraced);
  set_live_filter("");
  CHECK(function_filter(notraced).flags == kNotraced);
  CHECK(function_filter(other).flags == 0);

  *options = {};
  set_patterns(*options);
}

}  // namespace arctrace::shim
