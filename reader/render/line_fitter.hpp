// Lines that are never wider than the terminal.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "reader/render/text_style.hpp"

namespace arctrace::reader {

// `line` without a newline, cut to style.width columns with the style's ellipsis at its
// end. Colours take no columns.
std::string fit_line(std::string_view line, const TextStyle& style);

// `line` without a newline, continued in further lines where it is wider than
// style.width: for sentences, of which nothing may be cut. Breaks after blanks and '|';
// further lines begin with `indent` blanks.
std::string wrap_line(std::string_view line, size_t indent, const TextStyle& style);

// Text that comes in pieces, line by line.
class LineFitter {
 public:
  explicit LineFitter(const TextStyle& style) : style_(style) {}

  // The lines that `text` completes, each as fit_line() makes it.
  std::string add(std::string_view text);
  // What came after the last newline.
  std::string rest() const { return fit_line(rest_, style_); }

 private:
  const TextStyle style_;
  std::string rest_;
};

}  // namespace arctrace::reader
