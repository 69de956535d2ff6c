#include "reader/cli/options/command_line.hpp"

#include <algorithm>
#include <cstddef>

namespace arctrace::cli {

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
  if (!is(0, "record")) return;
  const CLI::App* app = root.get_subcommand("record");
  size_t i = 1;
  bool may_have_value = false;
  while (i < arguments.size() && arguments[i].size() > 1 && arguments[i][0] == '-' &&
         !is(i, "--")) {
    const CLI::Option* option = app->get_option_no_throw(arguments[i]);
    if (option == nullptr) option = root.get_option_no_throw(arguments[i]);
    const bool value_follows = option != nullptr && option->get_items_expected_min() > 0;
    may_have_value =
        !value_follows && option != nullptr && option->get_items_expected_max() > 0;
    i += value_follows ? 2 : 1;
  }
  if (i >= arguments.size()) return;
  // CLI11 takes a "--" after an option whose value is optional for the end of that value,
  // and drops it: then there have to be two.
  const size_t wanted = may_have_value ? 2 : 1;
  const size_t present = is(i, "--") ? 1 : 0;
  arguments.insert(arguments.begin() + static_cast<std::ptrdiff_t>(i), wanted - present,
                   "--");
}

}  // namespace arctrace::cli
