// The command line: the options of the command itself, and all its subcommands. The
// command parses it; the manual and the completions are made from it.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "reader/cli/commands/commands.hpp"
#include "reader/cli/options/cli11.hpp"

namespace arctrace::cli {

struct Command {
  CLI::App* app;
  Runner run;
};

// Adds everything to `root`. `config_file`: where options are read from if --config does
// not say; empty: nowhere. `must_exist`: it is an error if that file is missing.
std::vector<Command> add_commands(CLI::App& root, const std::string& config_file = "",
                                  bool must_exist = false);

// A root that has everything, for what only reads it.
std::shared_ptr<const CLI::App> command_tree();

}  // namespace arctrace::cli
