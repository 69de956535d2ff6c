#include "reader/render/text_style.hpp"

#include <absl/strings/str_cat.h>
#include <absl/strings/str_format.h>

#include <algorithm>

namespace arctrace::reader {
namespace {

constexpr size_t kNameColumnsMin = 16;
constexpr uint64_t kIndentedLevels = 48;

bool is_continuation(char c) { return (static_cast<uint8_t>(c) & 0xC0) == 0x80; }

// Where the code point `count` points into `text` begins.
size_t offset_of(std::string_view text, size_t count) {
  size_t offset = 0;
  while (offset < text.size()) {
    if (!is_continuation(text[offset]) && count-- == 0) break;
    ++offset;
  }
  return offset;
}

}  // namespace

std::string duration_text(uint64_t duration_ns) {
  if (duration_ns < 1'000) return absl::StrCat(duration_ns, " ns");
  const auto scaled = [duration_ns](uint64_t unit, const char* name) {
    return absl::StrFormat("%d.%03d %s", duration_ns / unit,
                           duration_ns % unit / (unit / 1'000), name);
  };
  if (duration_ns < 1'000'000) return scaled(1'000, "us");
  if (duration_ns < 1'000'000'000) return scaled(1'000'000, "ms");
  return scaled(1'000'000'000, "s");
}

std::string percent_text(uint64_t part, uint64_t whole) {
  const double share =
      whole == 0 ? 0 : 100 * static_cast<double>(part) / static_cast<double>(whole);
  return absl::StrFormat("%.2f", share);
}

std::string seconds_text(int64_t time_ns) {
  const uint64_t magnitude =
      time_ns < 0 ? 0 - static_cast<uint64_t>(time_ns) : static_cast<uint64_t>(time_ns);
  return absl::StrFormat("%s%d.%09d", time_ns < 0 ? "-" : "", magnitude / 1'000'000'000,
                         magnitude % 1'000'000'000);
}

void append_right(std::string& out, std::string_view text, size_t width) {
  if (text.size() < width) {
    out.append(width - text.size(), ' ');
  } else if (!out.empty()) {
    out += ' ';
  }
  out += text;
}

void append_left(std::string& out, std::string_view text, size_t width) {
  out += text;
  if (text.size() < width) out.append(width - text.size(), ' ');
}

size_t columns_of(std::string_view text) {
  return static_cast<size_t>(std::count_if(text.begin(), text.end(),
                                           [](char c) { return !is_continuation(c); }));
}

std::string cut_middle(std::string_view name, size_t width) {
  const size_t columns = columns_of(name);
  const size_t room = std::max(width, kNameColumnsMin);
  if (width == 0 || columns <= room) return std::string(name);
  const size_t head = room / 2;
  const size_t tail = room - 1 - head;
  std::string cut(name.substr(0, offset_of(name, head)));
  cut += "…";
  return cut += name.substr(offset_of(name, columns - tail));
}

size_t indent_columns(uint64_t depth) {
  return 2 * static_cast<size_t>(std::min(depth, kIndentedLevels));
}

void append_tinted(std::string& out, const TextStyle& style, Tint tint,
                   std::string_view text) {
  if (!style.color || text.empty()) {
    out += text;
    return;
  }
  switch (tint) {
    case Tint::kHead:
      out += "\x1b[1m";
      break;
    case Tint::kHot:
      out += "\x1b[31m";
      break;
    case Tint::kDim:
      out += "\x1b[2m";
      break;
    case Tint::kTrouble:
      out += "\x1b[33m";
      break;
  }
  out += text;
  out += "\x1b[0m";
}

}  // namespace arctrace::reader
