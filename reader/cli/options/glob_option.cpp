#include "reader/cli/options/glob_option.hpp"

#include <absl/strings/str_cat.h>

#include <CLI/CLI.hpp>

#include "src/base/glob.hpp"

namespace arctrace::cli {

std::optional<Problem> glob_problem(const std::string& pattern) {
  if (pattern.empty()) return Problem{0, "an empty pattern"};
  const GlobCheck check = check_glob(pattern);
  switch (check.fault) {
    case GlobFault::kNone:
      return std::nullopt;
    case GlobFault::kOpenBracket:
      return Problem{check.offset,
                     "no ] to this [; a backslash before it makes it plain"};
    case GlobFault::kClass:
      return Problem{check.offset, "no classes as in [[:alpha:]]; [a-z] is a range"};
    default:
      return Problem{check.offset, "nothing after the backslash"};
  }
}

CLI::Option* add_glob_option(CLI::App& app, const std::string& name,
                             std::vector<std::string>& globs, const std::string& help) {
  const auto problem_of = [](const std::string& glob) -> std::string {
    const std::optional<Problem> problem = glob_problem(glob);
    if (!problem) return {};
    return absl::StrCat("\"", glob, "\": ", problem->second);
  };
  return app.add_option(name, globs, help)
      ->check(CLI::Validator(problem_of, ""))
      ->type_name("GLOB")
      ->allow_extra_args(false);
}

}  // namespace arctrace::cli
