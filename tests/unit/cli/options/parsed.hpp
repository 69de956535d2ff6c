// Parses arguments with an application that has only the options under test.
#pragma once

#include <CLI/CLI.hpp>
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

namespace arctrace::testing {

// Returns the message of the error; empty if the arguments are accepted.
inline std::string parse_error(CLI::App& app, std::vector<std::string> arguments) {
  std::reverse(arguments.begin(), arguments.end());  // CLI11 takes them in reverse
  try {
    app.parse(std::move(arguments));
  } catch (const CLI::ParseError& error) {
    return error.what();
  }
  return {};
}

}  // namespace arctrace::testing
