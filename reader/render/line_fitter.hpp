// Lines that are never wider than the terminal.
#pragma once

#include <string>
#include <string_view>

#include "reader/render/text_style.hpp"
#include "reader/render/write_text.hpp"

namespace arctrace::reader {

// `line` without a newline, cut to style.width columns with the style's ellipsis at its
// end. Colours take no columns.
std::string fit_line(std::string_view line, const TextStyle& style);

// Hands whole lines to `write`, each as fit_line() makes it; `write` itself if the style
// has no width. What comes after the last newline is kept back.
WriteText fit_lines(WriteText write, const TextStyle& style);

}  // namespace arctrace::reader
