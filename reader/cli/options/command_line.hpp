// The arguments of arctrace, before they are parsed.
#pragma once

#include <string>
#include <vector>

#include "reader/cli/options/cli11.hpp"

namespace arctrace::cli {

// Puts a "--" before COMMAND in `record [OPTION]... COMMAND -x`, so that -x belongs to
// COMMAND, and in `help COMMAND`; and --after in place of the "--" in
// `diff A1 A2 -- B1 B2`. `arguments`: all of them, without the program's name; those of
// other subcommands stay as they are. `root`: has the subcommand record.
void separate_command(const CLI::App& root, std::vector<std::string>& arguments);

}  // namespace arctrace::cli
