// The command line as a whole: the options of the command itself and all its subcommands,
// from which the manual and the completions are made too, and how one is run.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "reader/cli/commands/commands.hpp"
#include "reader/cli/options/options.hpp"

namespace arctrace::cli {

// The command line: the options of the command itself, and all its subcommands. The
// command parses it; the manual and the completions are made from it.
struct Command {
  CLI::App* app;
  Runner run;
};

// Adds everything to `root`. `config_file`: where options are read from if --config does
// not say; empty: nowhere. `must_exist`: it is an error if that file is missing.
std::vector<Command> add_commands(CLI::App& root, const std::string& config_file = "",
                                  bool must_exist = false);

// Returns a root with all options and subcommands, for code that only reads it.
std::shared_ptr<const CLI::App> command_tree();

// Parses the command line, and runs one subcommand. It is in the library, and not beside
// main(), so that CLI11 is compiled into one unit. `arguments`: without the program's
// name. Returns the exit status.
int run_command(std::vector<std::string> arguments);

// Prints an error in one line. Returns the exit status of an error.
int fail(std::string_view message);

}  // namespace arctrace::cli
