// The filter of calls in the trace's words.
#include <doctest/doctest.h>

#include <memory>
#include <string>

#include "writer_shim/filter/live_filter.hpp"

namespace arctrace::shim {
namespace {

using namespace std::string_literals;

std::string text_of_options(const std::string& options_text) {
  const auto options = std::make_unique<ShimOptions>();
  decode_options(options_text.c_str(), *options);
  FilterText text;
  write_filter_text(*options, text);
  return {text.bytes, text.size};
}

}  // namespace

TEST_CASE("filter text: an entry for each part of the filter, and nothing else") {
  CHECK(text_of_options("").empty());
  // These only say what is hooked, and how; and no function has fewer bytes than one.
  CHECK(text_of_options("libcall=all;patch=.;args=i32:f;entryonly=g;size=1").empty());
  CHECK(text_of_options("depth=3;time=1000000;size=20") ==
        "depth:3\0time:1000000\0size:20\0"s);
  CHECK(
      text_of_options("filter=a*;notrace=re:^b$;module=lib?;time=18446744073709551615") ==
      "time:18446744073709551615\0+a*\0-re:^b$\0module:lib?\0"s);
}

TEST_CASE("filter text: what finds no room is said to be there") {
  std::string options = "depth=1";
  for (int i = 0; i < 40; ++i) options += ";filter=" + std::string(50, 'f');
  const std::string text = text_of_options(options);
  CHECK(text.size() <= kCallFilterTextMax);
  CHECK(text.size() > kCallFilterTextMax - 60);
  CHECK(text.starts_with("depth:1\0+fff"s));
  CHECK(text.ends_with("f\0?\0"s));
}

}  // namespace arctrace::shim
