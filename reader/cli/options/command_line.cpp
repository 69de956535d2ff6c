#include "reader/cli/options/command_line.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstddef>

namespace arctrace::cli {
namespace {

// The option of this name, of the subcommand or of the root; or null.
const CLI::Option* find_option(const CLI::App& root, const CLI::App& app,
                               const std::string& name) {
  const CLI::Option* option = app.get_option_no_throw(name);
  return option != nullptr ? option : root.get_option_no_throw(name);
}

bool needs_value(const CLI::Option* option) {
  return option != nullptr && option->get_items_expected_min() > 0;
}

// CLI11 takes a "--" after such an option for the end of its value, and drops it: then
// there have to be two.
bool may_have_value(const CLI::Option* option) {
  return option != nullptr && !needs_value(option) &&
         option->get_items_expected_max() > 0;
}

// CLI11 drops a "--". For live it says that a command follows: an empty argument says
// the same.
void separate_live_command(const CLI::App& root, std::vector<std::string>& arguments) {
  const auto divider = std::find(arguments.begin() + 1, arguments.end(), "--");
  if (divider == arguments.end()) return;
  const CLI::App& app = *root.get_subcommand("live");
  const bool is_dropped = may_have_value(find_option(root, app, *(divider - 1)));
  const auto command = arguments.insert(divider + 1, std::string());
  if (is_dropped) arguments.insert(command, "--");
}

}  // namespace

void separate_command(const CLI::App& root, std::vector<std::string>& arguments) {
  const auto is = [&](size_t i, const char* text) { return arguments[i] == text; };
  if (arguments.empty()) return;
  if (is(0, "diff")) {
    // CLI11 drops a "--", which here divides the files.
    const auto divider = std::find(arguments.begin(), arguments.end(), "--");
    if (divider != arguments.end()) *divider = "--after";
    return;
  }
  if (is(0, "help") && arguments.size() > 1 && arguments[1][0] != '-') {
    // CLI11 would take the name for that of a second command.
    arguments.insert(arguments.begin() + 1, "--");
    return;
  }
  if (is(0, "live")) return separate_live_command(root, arguments);
  if (!is(0, "record")) return;
  const CLI::App& app = *root.get_subcommand("record");
  size_t i = 1;
  bool is_dropped = false;
  while (i < arguments.size() && arguments[i].size() > 1 && arguments[i][0] == '-' &&
         !is(i, "--")) {
    const CLI::Option* option = find_option(root, app, arguments[i]);
    is_dropped = may_have_value(option);
    i += needs_value(option) ? size_t{2} : size_t{1};
  }
  if (i >= arguments.size()) return;
  const size_t wanted = is_dropped ? 2 : 1;
  const size_t present = is(i, "--") ? 1 : 0;
  arguments.insert(arguments.begin() + static_cast<std::ptrdiff_t>(i), wanted - present,
                   "--");
}

}  // namespace arctrace::cli
