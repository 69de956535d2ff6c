// Globs (src/base/glob.hpp) as values of options.
#pragma once

#include <string>
#include <vector>

#include "reader/cli/options/cli11.hpp"

namespace arctrace::cli {

// An option whose values are added to `globs`, one each time it is given. Parsing fails
// for a value that is no glob.
CLI::Option* add_glob_option(CLI::App& app, const std::string& name,
                             std::vector<std::string>& globs, const std::string& help);

}  // namespace arctrace::cli
