// Globs (src/base/glob.hpp) as values of options, and what is wrong with them.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "reader/cli/options/arg_spec.hpp"
#include "reader/cli/options/cli11.hpp"

namespace arctrace::cli {

// What is wrong with `pattern` as a glob, in one line. An empty one matches nothing, and
// is refused as well.
std::optional<Problem> glob_problem(const std::string& pattern);

// An option whose values are added to `globs`, one each time it is given. Parsing fails
// for a value that is no glob.
CLI::Option* add_glob_option(CLI::App& app, const std::string& name,
                             std::vector<std::string>& globs, const std::string& help);

}  // namespace arctrace::cli
