// The text of --help on a terminal.
#pragma once

#include <string>

#include "reader/render/text_style.hpp"

namespace arctrace::cli {

// `help` as CLI11 wrote it, with lines that are wider than style.width continued: the
// description of an option in its own column, other lines below where they began. 0: as
// it is.
std::string fit_help(const std::string& help, const reader::TextStyle& style);

}  // namespace arctrace::cli
