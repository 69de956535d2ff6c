// Durations, shares, long names and colours as the terminal shows them.
#include "reader/render/text_style.hpp"

#include <doctest/doctest.h>

using namespace arctrace::reader;

TEST_CASE("durations in units that people read") {
  CHECK(duration_text(0) == "0 ns");
  CHECK(duration_text(999) == "999 ns");
  CHECK(duration_text(1'000) == "1.000 us");
  CHECK(duration_text(999'999) == "999.999 us");
  CHECK(duration_text(12'345'678) == "12.345 ms");
  CHECK(duration_text(3'000'000'001) == "3.000 s");
  CHECK(duration_text(UINT64_MAX) == "18446744073.709 s");
}

TEST_CASE("seconds with all digits") {
  CHECK(seconds_text(0) == "0.000000000");
  CHECK(seconds_text(1'234'567'890) == "1.234567890");
  CHECK(seconds_text(-1) == "-0.000000001");
  CHECK(seconds_text(INT64_MIN) == "-9223372036.854775808");
}

TEST_CASE("shares") {
  CHECK(percent_text(1, 3) == "33.33");
  CHECK(percent_text(0, 0) == "0.00");
  CHECK(percent_text(5, 5) == "100.00");
}

TEST_CASE("long names lose their middle, never half a character") {
  CHECK(cut_middle("short", 16) == "short");
  CHECK(cut_middle("0123456789abcdefghij", 0) == "0123456789abcdefghij");
  CHECK(cut_middle("0123456789abcdefghij", 20) == "0123456789abcdefghij");
  CHECK(cut_middle("0123456789abcdefghij", 16) == "01234567…defghij");
  CHECK(cut_middle("0123456789abcdefghij", 1) == "01234567…defghij");
  const std::string umlauts = "ääääääääääöööööööööö";
  CHECK(cut_middle(umlauts, 16) == "ääääääää…ööööööö");
  CHECK(columns_of(umlauts) == 20);
}

TEST_CASE("colours only where they are wanted") {
  std::string text;
  append_tinted(text, {}, Tint::kHot, "x");
  CHECK(text == "x");
  append_tinted(text, {true, 0}, Tint::kHot, "y");
  CHECK(text == "x\x1b[31my\x1b[0m");
}
