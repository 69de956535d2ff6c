#include "reader/cli/options/glob_option.hpp"

#include <absl/strings/str_cat.h>

#include <CLI/CLI.hpp>

#include "src/recording/patterns/glob_problem.hpp"

namespace arctrace::cli {

CLI::Option* add_glob_option(CLI::App& app, const std::string& name,
                             std::vector<std::string>& globs, const std::string& help) {
  const auto problem_of = [](const std::string& glob) -> std::string {
    const auto problem = recording::glob_problem(glob);
    if (!problem) return {};
    return absl::StrCat("\"", glob, "\": ", problem->second);
  };
  return app.add_option(name, globs, help)
      ->check(CLI::Validator(problem_of, ""))
      ->type_name("GLOB")
      ->allow_extra_args(false);
}

}  // namespace arctrace::cli
