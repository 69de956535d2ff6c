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
  const TextStyle style;
  CHECK(cut_name("short", 16, style) == "short");
  CHECK(cut_name("0123456789abcdefghij", 0, style) == "0123456789abcdefghij");
  CHECK(cut_name("0123456789abcdefghij", 20, style) == "0123456789abcdefghij");
  CHECK(cut_name("0123456789abcdefghij", 16, style) == "01234567…defghij");
  CHECK(cut_name("0123456789abcdefghij", 1, style) == "01234567…defghij");
  const std::string umlauts = "ääääääääääöööööööööö";
  CHECK(cut_name(umlauts, 16, style) == "ääääääää…ööööööö");
  CHECK(columns_of(umlauts) == 20);
}

TEST_CASE("long names lose parameters first, then template arguments") {
  const TextStyle style;
  const char* name = "shop::find<std::string, int>(std::string const&, int) const";
  CHECK(cut_name(name, 59, style) == name);
  CHECK(cut_name(name, 50, style) ==
        "shop::find<std::string, int>(std::string c…) const");
  CHECK(cut_name(name, 37, style) == "shop::find<std::string, int>(…) const");
  CHECK(cut_name(name, 24, style) == "shop::find<st…>(…) const");
  CHECK(cut_name("lstat64(\"/usr/share/doc\") = 0", 24, style) ==
        "lstat64(\"/usr/shar…) = 0");
  CHECK(cut_name("operator<(A<int> const&, A<int> const&)", 16, style) ==
        "operator<(A<in…)");
  CHECK(cut_name("shared_pointer::operator->()", 16, style) == "shared_p…tor->()");
  CHECK(cut_name("f() > shop::find<int, long>()", 20, style) == "f() > shop…find<…>()");
  TextStyle ascii;
  ascii.utf8 = false;
  CHECK(cut_name("0123456789abcdefghij", 16, ascii) == "01234567..efghij");
}

TEST_CASE("indentation leaves half of the terminal to names") {
  CHECK(indent_columns(3, 50, {}) == 6);
  CHECK(indent_columns(1000, 50, {}) == 96);
  TextStyle style;
  style.width = 80;
  CHECK(indent_columns(3, 50, style) == 6);
  CHECK(indent_columns(30, 50, style) == 15);
  CHECK(indent_columns(30, 100, style) == 0);
}

TEST_CASE("colours only where they are wanted") {
  std::string text;
  append_tinted(text, {}, Tint::kHot, "x");
  CHECK(text == "x");
  append_tinted(text, {true, 0}, Tint::kHot, "y");
  CHECK(text == "x\x1b[31my\x1b[0m");
}
