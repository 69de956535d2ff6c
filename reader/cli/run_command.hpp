// Parses the command line, and runs one subcommand. In the library, and not beside
// main(), so that CLI11 is compiled into one unit.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace arctrace::cli {

// `arguments`: without the program's name. Returns the exit status.
int run_command(std::vector<std::string> arguments);

// Prints an error in one line. Returns the exit status of an error.
int fail(std::string_view message);

}  // namespace arctrace::cli
