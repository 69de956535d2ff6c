#include "reader/trace/text_escape.hpp"

#include <absl/strings/str_format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace arctrace::reader {
namespace {

bool is_plain(char c) { return c >= 0x20 && c < 0x7F && c != '\\'; }

struct Character {
  uint32_t code = 0;
  size_t size = 0;  // bytes; 0: it is not UTF-8
};

// Returns the character with which `text` begins. REQUIRES: text is not empty.
Character decode(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(text[i]); };
  const uint8_t first = byte(0);
  if (first < 0x80) return {first, 1};
  size_t size = 0;
  uint32_t code = 0;
  uint32_t least = 0;  // codes below have a shorter form
  if ((first & 0xE0) == 0xC0) {
    size = 2, code = first & 0x1F, least = 0x80;
  } else if ((first & 0xF0) == 0xE0) {
    size = 3, code = first & 0x0F, least = 0x800;
  } else if ((first & 0xF8) == 0xF0) {
    size = 4, code = first & 0x07, least = 0x10000;
  }
  if (size == 0 || size > text.size()) return {};
  for (size_t i = 1; i < size; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return {};
    code = code << 6 | (byte(i) & 0x3Fu);
  }
  const bool surrogate = code >= 0xD800 && code <= 0xDFFF;
  if (code < least || code > 0x10FFFF || surrogate) return {};
  return {code, size};
}

// Whether a character moves the cursor, or changes the order in which text is shown.
bool is_harmful(uint32_t code) {
  return code < 0x20 || (code >= 0x7F && code <= 0x9F) || code == 0x61C ||
         code == 0x180E || (code >= 0xFFF9 && code <= 0xFFFB) ||
         (code >= 0x200B && code <= 0x200F) || (code >= 0x2028 && code <= 0x202E) ||
         (code >= 0x2060 && code <= 0x206F) || code == 0xFEFF ||
         (code >= 0xE0000 && code <= 0xE007F);
}

void append_harmful(std::string& out, uint32_t code) {
  if (code == '\n') {
    out += "\\n";
  } else if (code == '\t') {
    out += "\\t";
  } else if (code == '\r') {
    out += "\\r";
  } else if (code < 0x80) {
    absl::StrAppendFormat(&out, "\\x%02x", code);
  } else {
    absl::StrAppendFormat(&out, "\\u{%x}", code);
  }
}

enum class Backslash : uint8_t { kDoubled, kKept };

void append(std::string& out, std::string_view text, Backslash backslash) {
  while (!text.empty()) {
    const auto plain_end = std::find_if_not(text.begin(), text.end(), is_plain);
    const auto plain = static_cast<size_t>(plain_end - text.begin());
    out.append(text.substr(0, plain));
    text.remove_prefix(plain);
    if (text.empty()) return;
    const Character next = decode(text);
    if (next.size == 0) {
      absl::StrAppendFormat(&out, "\\x%02x", static_cast<uint8_t>(text.front()));
      text.remove_prefix(1);
      continue;
    }
    if (next.code == '\\') {
      out += backslash == Backslash::kDoubled ? "\\\\" : "\\";
    } else if (is_harmful(next.code)) {
      append_harmful(out, next.code);
    } else {
      out.append(text.substr(0, next.size));
    }
    text.remove_prefix(next.size);
  }
}

}  // namespace

void append_escaped(std::string& out, std::string_view text) {
  append(out, text, Backslash::kDoubled);
}

std::string printable(std::string_view message) {
  std::string out;
  append(out, message, Backslash::kKept);
  return out;
}

std::string json_without_controls(std::string_view json) {
  std::string out;
  while (!json.empty()) {
    const Character next = decode(json);
    const size_t size = std::max<size_t>(next.size, 1);
    if (next.size == 0 || !is_harmful(next.code)) {
      out.append(json.substr(0, size));
    } else if (next.code < 0x10000) {
      absl::StrAppendFormat(&out, "\\u%04x", next.code);
    } else {
      const uint32_t pair = next.code - 0x10000;
      absl::StrAppendFormat(&out, "\\u%04x\\u%04x", 0xD800 + (pair >> 10),
                            0xDC00 + (pair & 0x3FF));
    }
    json.remove_prefix(size);
  }
  return out;
}

std::string escaped(std::string_view text) {
  std::string out;
  append_escaped(out, text);
  return out;
}

void append_quoted(std::string& out, std::string_view text) {
  out += '"';
  for (;;) {
    const size_t quote = std::min(text.find('"'), text.size());
    append_escaped(out, text.substr(0, quote));
    if (quote == text.size()) break;
    out += "\\\"";
    text.remove_prefix(quote + 1);
  }
  out += '"';
}

}  // namespace arctrace::reader
