// arctrace-tables: prints what is made from the command line's tables, for the build.
//
// usage: arctrace-tables commands | page COMMAND | config | functions HEADER |
//                        records SPEC | bash | zsh | fish
// The page of "arctrace" is that of the program, which has no command's name.
#include <cstdio>
#include <exception>
#include <fstream>
#include <iostream>
#include <sstream>
#include <string>
#include <vector>

#include "reader/cli/manual/option_table.hpp"
#include "reader/cli/run_command.hpp"

namespace arctrace::cli {
namespace {

std::string contents(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

// The names, one on each line.
std::string command_lines(const std::vector<CommandRow>& commands) {
  std::string lines;
  for (const CommandRow& command : commands) {
    if (!command.name.empty()) lines += command.name + "\n";
  }
  return lines;
}

// Returns an empty text if there is nothing of that name.
std::string text_of(const std::string& what, const std::string& argument) {
  const std::vector<CommandRow> commands = read_commands(*command_tree());
  if (what == "bash") return bash_completion(commands);
  if (what == "zsh") return zsh_completion(commands);
  if (what == "fish") return fish_completion(commands);
  if (what == "commands") return command_lines(commands);
  if (what == "config") return config_keys(commands);
  if (what == "functions") return header_functions(contents(argument));
  if (what == "records") return record_types(contents(argument));
  for (const CommandRow& command : commands) {
    if (command.name == (argument == "arctrace" ? "" : argument)) {
      return command_page(command, commands);
    }
  }
  return "";
}

}  // namespace
}  // namespace arctrace::cli

int main(int argc, char** argv) {
  try {
    const std::string text =
        arctrace::cli::text_of(argc > 1 ? argv[1] : "", argc > 2 ? argv[2] : "");
    if (text.empty()) {
      std::cerr << "arctrace-tables: nothing of that name\n";
      return 2;
    }
    std::cout << text;
    return std::cout.flush().good() ? 0 : 1;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "arctrace-tables: %s\n", error.what());
    return 1;
  }
}
