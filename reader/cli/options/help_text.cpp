#include "reader/cli/options/help_text.hpp"

#include <absl/strings/str_split.h>

#include <algorithm>
#include <vector>

#include "reader/render/line_fitter.hpp"

namespace arctrace::cli {
namespace {

// Where CLI11 begins descriptions.
constexpr size_t kDescriptionColumn = 30;

size_t indent_of(const std::string& line) {
  const size_t begin = std::min(line.find_first_not_of(' '), line.size());
  // Two blanks, then the name of an option or a command.
  return begin == 2 ? kDescriptionColumn : begin;
}

}  // namespace

std::string fit_help(const std::string& help, const reader::TextStyle& style) {
  std::string text;
  const std::vector<std::string> lines = absl::StrSplit(help, '\n');
  for (const std::string& line : lines) {
    if (&line != &lines.front()) text += '\n';
    text += reader::wrap_line(line, std::min(indent_of(line), style.width / 2), style);
  }
  return text;
}

}  // namespace arctrace::cli
