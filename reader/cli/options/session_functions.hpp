// The functions of the programs in a session, from the symbol tables of their modules.
#pragma once

#include <absl/container/btree_set.h>
#include <absl/status/statusor.h>

#include <string>

#include "reader/cli/options/function_pattern.hpp"

namespace arctrace::cli {

struct SessionFunction : FunctionNames {
  bool operator<(const SessionFunction& other) const { return linked < other.linked; }
};

struct SessionFunctions {
  absl::btree_set<SessionFunction> functions;
  absl::btree_set<std::string> modules;  // names of their files, without a directory
};

// The functions of the processes whose definitions the buffer in the file `path` still
// holds. Error: the buffer cannot be read.
absl::StatusOr<SessionFunctions> functions_of_session(const std::string& path);

}  // namespace arctrace::cli
