#include "reader/render/shell_text.hpp"

#include <absl/strings/ascii.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_format.h>

#include <algorithm>

#include "reader/render/text_style.hpp"
#include "reader/trace/text_escape.hpp"

namespace arctrace::reader {
namespace {

bool is_plain(char c) {
  constexpr std::string_view kPlain = "_@%+=:,./-";
  return absl::ascii_isalnum(static_cast<unsigned char>(c)) ||
         kPlain.find(c) != std::string_view::npos;
}

// Not every shell reads $'...'.
std::string with_escapes(std::string_view text) {
  std::string word = "\"$(printf '";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '%') {
      word += "%%";
    } else if (absl::ascii_isprint(byte) && c != '\'' && c != '\\') {
      word += c;
    } else {
      absl::StrAppendFormat(&word, "\\%03o", byte);
    }
  }
  return word + "')\"";
}

}  // namespace

std::string shell_word(std::string_view text) {
  if (!text.empty() && std::all_of(text.begin(), text.end(), is_plain)) {
    return std::string(text);
  }
  if (printable(text) != text) return with_escapes(text);
  std::string word = "'";
  for (const char c : text) {
    if (c == '\'') {
      word += "'\\''";
    } else {
      word += c;
    }
  }
  return word + "'";
}

std::string shell_file(std::string_view path) {
  return shell_word((path.starts_with('-') ? "./" : "") + std::string(path));
}

std::string shell_command(const std::vector<std::string>& words, size_t begin,
                          size_t width) {
  const std::string goes_on = " \\";
  std::string text;
  size_t column = begin;
  for (size_t i = 0; i < words.size(); ++i) {
    const size_t columns = columns_of(words[i]);
    const size_t after = i + 1 == words.size() ? 0 : goes_on.size();
    if (i != 0 && width != 0 && column + 1 + columns + after > width) {
      absl::StrAppend(&text, goes_on, "\n", std::string(begin + 2, ' '));
      column = begin + 2;
    } else if (i != 0) {
      text += ' ';
      ++column;
    }
    text += words[i];
    column += columns;
  }
  return text;
}

}  // namespace arctrace::reader
