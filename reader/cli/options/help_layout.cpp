#include "reader/cli/options/help_layout.hpp"

#include <absl/strings/match.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_split.h>

#include <algorithm>
#include <array>
#include <vector>

namespace arctrace::cli {

bool is_own_group(const std::string& group) {
  constexpr std::array kOwn = {kFileGroup, kKernelGroup, kEventsGroup, kPartsGroup,
                               kBufferGroup};
  return std::find(kOwn.begin(), kOwn.end(), group) != kOwn.end();
}

std::string HelpFormatter::make_option_opts(const CLI::Option* option) const {
  if (option->get_type_size() == 0) return {};
  const std::string type = option->get_type_name();
  std::string text = type.empty() ? "" : absl::StrCat(" ", type);
  if (!option->get_default_str().empty()) {
    absl::StrAppend(&text, "=", option->get_default_str());
  }
  const bool has_several =
      option->get_expected_max() == CLI::detail::expected_max_vector_size;
  if (has_several && !absl::EndsWith(type, "...")) text += " ...";
  if (option->get_required()) text += " (required)";
  return text;
}

namespace {

// The column in which CLI11 begins descriptions.
constexpr size_t kDescriptionColumn = 30;

size_t indent_of(const std::string& line) {
  const size_t begin = std::min(line.find_first_not_of(' '), line.size());
  // A line with an option or a command begins with two blanks, then the name.
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
