// Lines cut to the width of a terminal.
#include <doctest/doctest.h>

#include "reader/render/text_style.hpp"

using namespace arctrace::reader;

TEST_CASE("a line is cut where it would be too wide, colours and characters stay whole") {
  TextStyle style;
  CHECK(fit_line("0123456789", style) == "0123456789");
  style.width = 10;
  CHECK(fit_line("0123456789", style) == "0123456789");
  CHECK(fit_line("0123456789a", style) == "012345678…");
  CHECK(fit_line("ääääääääää", style) == "ääääääääää");
  CHECK(fit_line("äääääääääää", style) == "äääääääää…");
  CHECK(fit_line("\x1b[1m0123456789\x1b[0m", style) == "\x1b[1m0123456789\x1b[0m");
  CHECK(fit_line("01234\x1b[1m56789a\x1b[0m", style) == "01234\x1b[1m5678…\x1b[0m");
  style.utf8 = false;
  CHECK(fit_line("0123456789a", style) == "01234567..");
}

TEST_CASE("lines come whole, however they were written") {
  TextStyle style;
  style.width = 5;
  LineFitter fitter(style);
  std::string out = fitter.add("ab");
  CHECK(out.empty());
  out += fitter.add("cdefg\nx\n\nlon");
  out += fitter.add("ger line\nend");
  CHECK(out == "abcd…\nx\n\nlong…\n");
  CHECK(fitter.rest() == "end");
}

TEST_CASE("sentences go on in the next line, with nothing cut") {
  TextStyle style;
  CHECK(wrap_line("one two three", 2, style) == "one two three");
  style.width = 10;
  CHECK(wrap_line("one two", 2, style) == "one two");
  CHECK(wrap_line("one two three four", 2, style) == "one two\n  three\n  four");
  CHECK(wrap_line("  ab cd ef gh", 4, style) == "  ab cd ef\n    gh");
  CHECK(wrap_line("summary|tree|flat", 1, style) == "summary|\n tree|flat");
  CHECK(wrap_line("unbreakable-word x", 2, style) == "unbreakable-word\n  x");
  CHECK(wrap_line("äöü äöü äöü", 0, style) == "äöü äöü\näöü");
  CHECK(wrap_line("\x1b[1mone two\x1b[0m three", 0, style) ==
        "\x1b[1mone two\x1b[0m\nthree");
}
