// What is said of a command line that cannot be parsed.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace arctrace::cli {

// Returns the error in plain words. `app`: the subcommand, or the root.
std::string parse_error_text(const CLI::App& app, const CLI::ParseError& error);

// Returns the name of the option with which such a text begins.
std::string option_in(const std::string& message);

// Returns what is said of a command that is none of `names`: which ones have a name that
// is near, or do what other tracers call so.
std::string unknown_command_text(const std::string& name,
                                 const std::vector<std::string>& names);

}  // namespace arctrace::cli
