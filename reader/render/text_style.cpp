#include "reader/render/text_style.hpp"

#include <absl/strings/ascii.h>
#include <absl/strings/match.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_format.h>

#include <algorithm>
#include <cmath>
#include <utility>

namespace arctrace::reader {
namespace {

constexpr size_t kNameColumnsMin = 16;
constexpr uint64_t kIndentedLevels = 48;

bool is_continuation(char c) { return (static_cast<uint8_t>(c) & 0xC0) == 0x80; }

// Returns where the code point number `count` of `text` begins.
size_t offset_of(std::string_view text, size_t count) {
  size_t offset = 0;
  while (offset < text.size()) {
    if (!is_continuation(text[offset]) && count-- == 0) break;
    ++offset;
  }
  return offset;
}

// Returns `text` with up to `excess` columns less, which are cut from the ends of what is
// between outermost pairs of `open` and `close`. Text outside of pairs stays, as in
// operator< and operator->.
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

// Returns where the bracket that opens at `begin` is closed, or the end of the text.
size_t closed_at(std::string_view text, size_t begin) {
  size_t depth = 0, end = begin;
  for (; end < text.size(); ++end) {
    const bool is_arrow = end > 0 && text[end - 1] == '-' && text[end] == '>';
    if (absl::StrContains("(<[{", text[end])) ++depth;
    if (absl::StrContains(")>]}", text[end]) && !is_arrow && --depth == 0) break;
  }
  return end;
}

// Returns how much of a function's name, as C++ writes it, is its result and the blank
// after it: names of templates begin with one. A path of names, or a name with arguments
// that were recorded, has none.
size_t result_size(std::string_view name) {
  constexpr std::string_view kOperator = "operator";
  size_t size = 0;
  for (size_t i = 0; i < name.size(); ++i) {
    const char before = i == 0 ? ' ' : name[i - 1];
    if (name[i] == '(' && before != ' ') return before == '>' ? size : 0;
    if (name[i] == ' ') {
      size = i + 1;
    } else if (absl::StrContains("(<[{", name[i])) {
      i = closed_at(name, i);
    } else if ((before == ' ' || before == ':') &&
               name.substr(i, kOperator.size()) == kOperator) {
      const std::string_view rest = name.substr(i + kOperator.size());
      if (!rest.empty() && rest.front() != '_' &&
          !absl::ascii_isalnum(static_cast<uint8_t>(rest.front()))) {
        return size;
      }
    }
  }
  return 0;
}

}  // namespace

std::string grouped_text(uint64_t number) {
  const std::string digits = absl::StrCat(number);
  std::string text;
  for (size_t i = 0; i < digits.size(); ++i) {
    if (i != 0 && (digits.size() - i) % 3 == 0) text += ',';
    text += digits[i];
  }
  return text;
}

std::string duration_text(uint64_t duration_ns) {
  if (duration_ns == 0) return "-";
  if (duration_ns < 1'000) return absl::StrCat(duration_ns, " ns");
  TimeScale scale = time_scale(duration_ns);
  // After rounding, 999.6 us are 1.00 ms.
  const uint64_t thousand_ns = scale.unit_ns * 1'000;
  if (scale.unit_ns < 1'000'000'000 && thousand_ns - duration_ns <= scale.unit_ns / 2) {
    scale = time_scale(thousand_ns);
    duration_ns = thousand_ns;
  }
  return absl::StrCat(scaled_text(duration_ns, scale), " ", scale.unit);
}

std::string call_time_text(uint64_t duration_ns) {
  return duration_ns == 0 ? "<1 ns" : duration_text(duration_ns);
}

TimeScale time_scale(uint64_t largest_ns) {
  if (largest_ns < 1'000) return {"ns", 1, 0};
  TimeScale scale{"us", 1'000, 2};
  if (largest_ns >= 1'000'000) scale = {"ms", 1'000'000, 2};
  if (largest_ns >= 1'000'000'000) scale = {"s", 1'000'000'000, 2};
  // The column gets as many decimals as leave three digits of the largest time, once that
  // is rounded.
  for (uint64_t limit_ns = scale.unit_ns * 10, digit_ns = scale.unit_ns / 100;
       scale.decimals > 0 && largest_ns >= limit_ns - digit_ns / 2; --scale.decimals) {
    limit_ns *= 10;
    digit_ns *= 10;
  }
  return scale;
}

std::string scaled_text(uint64_t duration_ns, const TimeScale& scale) {
  if (duration_ns == 0) return "-";
  uint64_t digit_ns = scale.unit_ns;  // what the last digit stands for
  for (int i = 0; i < scale.decimals; ++i) digit_ns /= 10;
  const uint64_t rest_ns = duration_ns % digit_ns;
  const uint64_t digits = duration_ns / digit_ns + (rest_ns * 2 >= digit_ns ? 1 : 0);
  const uint64_t per_unit = scale.unit_ns / digit_ns;
  if (digits == 0) return duration_text(duration_ns);
  std::string text = grouped_text(digits / per_unit);
  if (scale.decimals > 0) {
    absl::StrAppend(&text, absl::StrFormat(".%0*d", scale.decimals, digits % per_unit));
  }
  return text;
}

std::string percent_text(uint64_t part, uint64_t whole) {
  if (part == 0 || whole == 0) return "-";
  const double share = 100 * static_cast<double>(part) / static_cast<double>(whole);
  if (share < 0.05) return "<0.1";
  return share < 99.95 ? absl::StrFormat("%.1f", share) : absl::StrFormat("%.0f", share);
}

std::string share_text(uint64_t part, uint64_t whole) {
  if (part == 0 || whole == 0) return "-";
  const double share = 100 * static_cast<double>(part) / static_cast<double>(whole);
  return share < 0.5 ? "<1 %" : absl::StrFormat("%.0f %%", share);
}

std::string bar_text(uint64_t part, uint64_t whole, size_t columns,
                     const TextStyle& style) {
  constexpr std::string_view kEighths[] = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
  if (whole == 0) return {};
  const double share =
      std::min(static_cast<double>(part) / static_cast<double>(whole), 1.0);
  const auto eighths =
      static_cast<size_t>(std::llround(share * 8 * static_cast<double>(columns)));
  if (!style.utf8) return std::string((eighths + 4) / 8, '#');
  std::string bar;
  for (size_t i = 0; i < eighths / 8; ++i) bar += "█";
  return bar += kEighths[eighths % 8];
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
  cut = cut_nested(cut, '(', ')', columns_of(cut) - room, ellipsis);
  if (columns_of(cut) <= room) return cut;
  cut.erase(0, result_size(cut));
  if (columns_of(cut) <= room) return cut;
  cut = cut_nested(cut, '<', '>', columns_of(cut) - room, ellipsis);
  if (columns_of(cut) <= room) return cut;
  const size_t columns = columns_of(cut);
  const size_t head = room / 2;
  const size_t tail = room - columns_of(ellipsis) - head;
  std::string middle(cut.substr(0, offset_of(cut, head)));
  middle += ellipsis;
  return middle += cut.substr(offset_of(cut, columns - tail));
}

std::string cut_path(std::string_view path, size_t width, const TextStyle& style) {
  constexpr std::string_view kBetween = " > ";
  if (columns_of(path) <= width) return std::string(path);
  const std::string gap =
      std::string(kBetween) + std::string(ellipsis_of(style)) + std::string(kBetween);
  // The parts of the path that stay: up to `head`, and from `tail` on. Both grow in turn
  // by one function, as long as they fit.
  size_t head = path.find(kBetween), tail = path.rfind(kBetween);
  if (head == std::string_view::npos || head == tail) {
    return cut_name(path, width, style);
  }
  tail += kBetween.size();
  const auto made = [&](size_t up_to, size_t from) {
    return std::string(path.substr(0, up_to)) + gap + std::string(path.substr(from));
  };
  bool head_grows = true, tail_grows = true;
  while (head_grows || tail_grows) {
    if (tail_grows) {
      const size_t before = path.rfind(kBetween, tail - kBetween.size() - 1);
      const size_t from = before == std::string_view::npos ? 0 : before + kBetween.size();
      tail_grows = from > head && columns_of(made(head, from)) <= width;
      if (tail_grows) tail = from;
    }
    if (head_grows) {
      const size_t up_to = path.find(kBetween, head + kBetween.size());
      head_grows = up_to < tail && columns_of(made(up_to, tail)) <= width;
      if (head_grows) head = up_to;
    }
  }
  const std::string cut = made(head, tail);
  return columns_of(cut) <= width ? cut : cut_name(cut, width, style);
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

namespace {

constexpr char kEscape = '\x1b';

// Returns the length of the code point or colour at the beginning of `text`, and its
// columns.
std::pair<size_t, size_t> next_piece(std::string_view text) {
  if (text.front() == kEscape) {
    const size_t end = text.find('m');
    return {end == std::string_view::npos ? text.size() : end + 1, 0};
  }
  size_t length = 1;
  while (length < text.size() && (static_cast<uint8_t>(text[length]) & 0xC0) == 0x80) {
    ++length;
  }
  return {length, 1};
}

}  // namespace

std::string fit_line(std::string_view line, const TextStyle& style) {
  if (style.width == 0 || line.size() <= style.width) return std::string(line);
  const std::string_view ellipsis = ellipsis_of(style);
  const size_t room = style.width - std::min(style.width, columns_of(ellipsis));
  size_t columns = 0, offset = 0;
  size_t cut = std::string_view::npos;  // where what fits beside an ellipsis ends
  while (offset < line.size()) {
    const auto [length, width] = next_piece(line.substr(offset));
    if (columns == room && width != 0 && cut == std::string_view::npos) cut = offset;
    columns += width;
    if (columns > style.width) break;
    offset += length;
  }
  if (columns <= style.width) return std::string(line);
  std::string fitted(line.substr(0, cut));
  fitted += ellipsis;
  if (fitted.find(kEscape) != std::string::npos) fitted += "\x1b[0m";
  return fitted;
}

std::string wrap_line(std::string_view line, size_t indent, const TextStyle& style) {
  if (style.width == 0) return std::string(line);
  std::string text;
  size_t used = 0, begin = 0;  // columns of the last line; where it has no words yet
  while (!line.empty()) {
    size_t length = 0, columns = 0;  // of a word, and the blanks before it
    for (bool has_word = false; length < line.size();) {
      const auto [size, width] = next_piece(line.substr(length));
      const char c = line[length];
      if (c == ' ' && has_word) break;
      has_word |= c != ' ' && width != 0;
      length += size;
      columns += width;
      if (c == '|') break;
    }
    if (used + columns > style.width && used > begin) {
      const size_t blanks = std::min(line.find_first_not_of(' '), length);
      text += "\n" + std::string(indent, ' ');
      used = begin = indent;
      line.remove_prefix(blanks);
      length -= blanks;
      columns -= blanks;
    }
    text += line.substr(0, length);
    used += columns;
    line.remove_prefix(length);
  }
  return text;
}

std::string LineFitter::add(std::string_view text) {
  std::string lines;
  for (size_t end = text.find('\n'); end != std::string_view::npos;
       end = text.find('\n')) {
    rest_ += text.substr(0, end);
    lines += fit_line(rest_, style_);
    lines += '\n';
    rest_.clear();
    text.remove_prefix(end + 1);
  }
  rest_ += text;
  return lines;
}

}  // namespace arctrace::reader
