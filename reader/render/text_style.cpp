#include "reader/render/text_style.hpp"

#include <absl/strings/str_cat.h>
#include <absl/strings/str_format.h>

#include <algorithm>
#include <utility>

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

// `text` with up to `excess` columns less, which are cut from the ends of what is between
// outermost pairs of `open` and `close`. What is not in pairs stays, as in operator< and
// operator->.
std::string cut_nested(std::string_view text, char open, char close, size_t excess,
                       std::string_view ellipsis) {
  std::string out;
  while (excess > 0) {
    const size_t begin = std::min(text.find(open), text.size());
    size_t end = begin;
    for (size_t depth = 0; end < text.size(); ++end) {
      if (text[end] == open) ++depth;
      const bool is_arrow = close == '>' && text[end - (end == 0 ? 0 : 1)] == '-';
      if (text[end] == close && !is_arrow && --depth == 0) break;
    }
    if (end == text.size()) break;
    const std::string_view inside = text.substr(begin + 1, end - begin - 1);
    const size_t columns = columns_of(inside);
    const size_t kept =
        std::max(columns, excess + columns_of(ellipsis)) - excess - columns_of(ellipsis);
    out += text.substr(0, begin + 1);
    if (columns > columns_of(ellipsis)) {
      out += inside.substr(0, offset_of(inside, kept));
      out += ellipsis;
      excess -= std::min(excess, columns - kept - columns_of(ellipsis));
    } else {
      out += inside;
    }
    out += close;
    text.remove_prefix(end + 1);
  }
  return out += text;
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

std::string_view ellipsis_of(const TextStyle& style) { return style.utf8 ? "…" : ".."; }

std::string cut_name(std::string_view name, size_t width, const TextStyle& style) {
  const size_t room = std::max(width, kNameColumnsMin);
  if (width == 0 || columns_of(name) <= room) return std::string(name);
  const std::string_view ellipsis = ellipsis_of(style);
  std::string cut(name);
  for (const auto& [open, close] : {std::pair('(', ')'), std::pair('<', '>')}) {
    cut = cut_nested(cut, open, close, columns_of(cut) - room, ellipsis);
    if (columns_of(cut) <= room) return cut;
  }
  const size_t columns = columns_of(cut);
  const size_t head = room / 2;
  const size_t tail = room - columns_of(ellipsis) - head;
  std::string middle(cut.substr(0, offset_of(cut, head)));
  middle += ellipsis;
  return middle += cut.substr(offset_of(cut, columns - tail));
}

size_t indent_columns(uint64_t depth, size_t used, const TextStyle& style) {
  const size_t wanted = 2 * static_cast<size_t>(std::min(depth, kIndentedLevels));
  if (style.width == 0) return wanted;
  return std::min(wanted, (style.width - std::min(style.width, used)) / 2);
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
