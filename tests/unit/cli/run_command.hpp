// Runs the built arctrace on files made for a test.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace arctrace::testing {

struct CommandResult {
  int status = -1;  // exit status, or -1 - signal
  std::string out, err;
};

// Runs arctrace. `arguments`: shell text after "arctrace", redirections and pipes
// included; {} in it is the file's path.
CommandResult run_arctrace(const std::string& arguments,
                           const std::vector<std::byte>& file = {});

}  // namespace arctrace::testing
