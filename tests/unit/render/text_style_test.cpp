// Durations, shares, long names and colours as the terminal shows them.
#include "reader/render/text_style.hpp"

#include <doctest/doctest.h>

using namespace arctrace::reader;

TEST_CASE("durations in units that people read") {
  CHECK(duration_text(0) == "-");
  CHECK(duration_text(1) == "1 ns");
  CHECK(duration_text(999) == "999 ns");
  CHECK(duration_text(1'000) == "1.00 us");
  CHECK(duration_text(9'994) == "9.99 us");
  CHECK(duration_text(9'995) == "10.0 us");
  CHECK(duration_text(99'949) == "99.9 us");
  CHECK(duration_text(99'950) == "100 us");
  CHECK(duration_text(999'499) == "999 us");
  CHECK(duration_text(999'500) == "1.00 ms");
  CHECK(duration_text(12'345'678) == "12.3 ms");
  CHECK(duration_text(3'000'000'001) == "3.00 s");
  CHECK(duration_text(1'234'000'000'000) == "1,234 s");
  CHECK(duration_text(UINT64_MAX) == "18,446,744,074 s");
  CHECK(call_time_text(0) == "<1 ns");
  CHECK(call_time_text(1'000) == "1.00 us");
}

TEST_CASE("of a path the outermost and the innermost functions stay") {
  const TextStyle style;
  const std::string path = "main > run > call > eval > call > sort";
  CHECK(cut_path(path, 38, style) == path);
  CHECK(cut_path(path, 37, style) == "main > run > … > eval > call > sort");
  CHECK(cut_path(path, 28, style) == "main > run > … > call > sort");
  CHECK(cut_path(path, 27, style) == "main > … > call > sort");
  CHECK(cut_path(path, 16, style) == "main > … > sort");
  CHECK(cut_path("0123456789 > abcdefghij > 0", 16, style) == "01234567…> … > 0");
  CHECK(cut_path("0123456789abcdefghij > f", 20, style) == "0123456789…fghij > f");
  TextStyle ascii;
  ascii.utf8 = false;
  CHECK(cut_path(path, 24, ascii) == "main > .. > call > sort");
}

TEST_CASE("a column of times has one unit, in which the largest has three digits") {
  const TimeScale scale = time_scale(88'840'000);
  CHECK(std::string(scale.unit) == "ms");
  CHECK(scaled_text(88'840'000, scale) == "88.8");
  CHECK(scaled_text(9'650'000, scale) == "9.7");
  CHECK(scaled_text(50'000, scale) == "0.1");
  // A value that is too small for the column's unit has its own.
  CHECK(scaled_text(49'999, scale) == "50.0 us");
  CHECK(scaled_text(0, scale) == "-");
  CHECK(scaled_text(9'996'000, time_scale(9'996'000)) == "10.0");
  CHECK(scaled_text(412, time_scale(412)) == "412");
  CHECK(scaled_text(1'234'000'000'000, time_scale(1'234'000'000'000)) == "1,234");
}

TEST_CASE("thousands") {
  CHECK(grouped_text(0) == "0");
  CHECK(grouped_text(999) == "999");
  CHECK(grouped_text(1'000) == "1,000");
  CHECK(grouped_text(1'234'567) == "1,234,567");
}

TEST_CASE("bars are as long as the share, in blocks or ASCII") {
  TextStyle style;
  CHECK(bar_text(1, 1, 4, style) == "████");
  CHECK(bar_text(1, 2, 4, style) == "██");
  CHECK(bar_text(9, 16, 4, style) == "██▎");
  CHECK(bar_text(0, 1, 4, style).empty());
  CHECK(bar_text(0, 0, 4, style).empty());
  CHECK(bar_text(5, 1, 4, style) == "████");
  style.utf8 = false;
  CHECK(bar_text(1, 2, 4, style) == "##");
}

TEST_CASE("seconds with all digits") {
  CHECK(seconds_text(0) == "0.000000000");
  CHECK(seconds_text(1'234'567'890) == "1.234567890");
  CHECK(seconds_text(-1) == "-0.000000001");
  CHECK(seconds_text(INT64_MIN) == "-9223372036.854775808");
}

TEST_CASE("shares") {
  CHECK(percent_text(1, 3) == "33.3");
  CHECK(percent_text(0, 0) == "-");
  CHECK(percent_text(5, 5) == "100");
  CHECK(percent_text(9'996, 10'000) == "100");
  CHECK(percent_text(1, 10'000) == "<0.1");
  CHECK(share_text(1, 3) == "33 %");
  CHECK(share_text(1, 1'000) == "<1 %");
  CHECK(share_text(0, 3) == "-");
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

TEST_CASE("long names of templates lose their result before their arguments") {
  const TextStyle style;
  const char* name = "void (anonymous namespace)::function<9ul>(unsigned int)";
  CHECK(cut_name(name, 22, style) == "(…)::function<9ul>(…)");
  CHECK(cut_name(name, 26, style) == "void (…)::function<9ul>(…)");
  CHECK(cut_name("std::map<int, long> make<int>(int, char const*)", 16, style) ==
        "make<int>(…)");
  CHECK(cut_name("bool operator< <int>(A<int> const&)", 20, style) ==
        "operator< <int>(…)");
  CHECK(cut_name("decltype (x->y) get<A>(A)", 16, style) == "get<A>(A)");
  // These have no result type.
  CHECK(cut_name("shop::basket::operator bool() const", 34, style) ==
        "shop::basket::ope…tor bool() const");
  CHECK(cut_name("find_operator<int>(int) > shop::find<int>(int)", 40, style) ==
        "find_operator<…>(…) > shop::find<int>(…)");
  CHECK(cut_name("int (*get<int>(int))(char)", 20, style) == "int (*get<in…)(char)");
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
