// Completions for shells, made from the command line's tables. What only the running
// system knows, sessions and functions, they get from arctrace complete.
#pragma once

#include <string>
#include <vector>

#include "reader/cli/manual/option_table.hpp"

namespace arctrace::cli {

std::string bash_completion(const std::vector<CommandRow>& commands);
std::string zsh_completion(const std::vector<CommandRow>& commands);
std::string fish_completion(const std::vector<CommandRow>& commands);

}  // namespace arctrace::cli
