// Text of a trace is escaped before it reaches a terminal.
#include "reader/trace/text_escape.hpp"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>
#include <random>
#include <string>

namespace arctrace::reader {
namespace {

TEST_CASE("plain text and UTF-8 stay") {
  CHECK(escaped("") == "");
  CHECK(escaped("operator()(int, char const*)") == "operator()(int, char const*)");
  CHECK(escaped("größe 漢字 🙂") == "größe 漢字 🙂");
}

TEST_CASE("what acts on a terminal is shown instead") {
  CHECK(escaped("a\nb\tc\rd") == "a\\nb\\tc\\rd");
  CHECK(escaped("\x1b[31mred\x07\x7f") == "\\x1b[31mred\\x07\\x7f");
  CHECK(escaped(std::string_view("\0x", 2)) == "\\x00x");
  CHECK(escaped("C:\\dir") == "C:\\\\dir");
  CHECK(escaped("\xc2\x9b"
                "31m") == "\\u{9b}31m");  // CSI in one character
  const std::string right_to_left = std::string("\xe2\x80") + '\xae';
  CHECK(escaped(right_to_left + "x") == "\\u{202e}x");
  CHECK(escaped("\xe2\x80\xa8") == "\\u{2028}");       // line separator
  CHECK(escaped("\xf3\xa0\x81\x81") == "\\u{e0041}");  // tag, invisible
}

TEST_CASE("bytes that are no UTF-8") {
  CHECK(escaped("\xff") == "\\xff");
  CHECK(escaped("\xc3") == "\\xc3");
  CHECK(escaped("\xc3(") == "\\xc3(");
  CHECK(escaped("\xc0\xaf") == "\\xc0\\xaf");           // overlong form
  CHECK(escaped("\xed\xa0\x80") == "\\xed\\xa0\\x80");  // surrogate
  CHECK(escaped("\xf4\x90\x80\x80") == "\\xf4\\x90\\x80\\x80");
  CHECK(escaped("\xe6\xbc") == "\\xe6\\xbc");
}

TEST_CASE("messages keep backslashes, JSON has escapes of its own") {
  CHECK(printable("a\\x1b \x1b[31m \xc2\x9b \xe2\x80\xae \xff\n") ==
        "a\\x1b \\x1b[31m \\u{9b} \\u{202e} \\xff\\n");
  CHECK(json_without_controls("\"a\\n\x7f\xc2\x9b\xe2\x80\xa8\xc3\xa4\"") ==
        "\"a\\n\\u007f\\u009b\\u2028\xc3\xa4\"");
  const std::string tag = "\xf3\xa0\x80\xa1";  // U+E0021
  const std::string json = json_without_controls("\"" + tag + "\"");
  CHECK(json == "\"\\udb40\\udc21\"");
  CHECK(nlohmann::json::parse(json).get<std::string>() == tag);
}

TEST_CASE("any bytes: no control character comes out, and all of it is UTF-8") {
  const uint64_t seed = std::random_device()();
  CAPTURE(seed);
  std::mt19937_64 random(seed);
  for (int round = 0; round < 5000; ++round) {
    std::string text;
    for (uint64_t i = random() % 20; i > 0; --i) {
      text += static_cast<char>(random() % 3 == 0 ? random() : random() % 64 + 0x80);
    }
    const std::string shown = escaped(text);
    for (const char c : shown)
      CHECK((static_cast<unsigned char>(c) >= 0x20 && c != 0x7F));
    CHECK_NOTHROW(static_cast<void>(nlohmann::json(shown).dump()));
  }
}

}  // namespace
}  // namespace arctrace::reader
