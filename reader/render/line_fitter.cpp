#include "reader/render/line_fitter.hpp"

#include <algorithm>
#include <utility>

namespace arctrace::reader {
namespace {

constexpr char kEscape = '\x1b';

// The length of the code point or colour at the beginning of `text`, and its columns.
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
