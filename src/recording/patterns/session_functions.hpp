// The functions of the programs in a session, from the symbol tables of their modules,
// and their scopes.
#pragma once

#include <absl/container/btree_set.h>
#include <absl/status/statusor.h>
#include <sys/types.h>

#include <string>
#include <vector>

#include "src/recording/patterns/function_pattern.hpp"

namespace arctrace::recording {

struct SessionFunction : FunctionNames {
  // Whether a process that has it has a demangler, so that its C++ names match there.
  bool is_demangled = false;
  // Whether the shim finds that the pattern matches.
  bool is_matched_by(const FunctionPattern& pattern) const;
  bool operator<(const SessionFunction& other) const { return linked < other.linked; }
};

struct SessionFunctions {
  absl::btree_set<SessionFunction> functions;
  // The names that programs gave to scopes, and to other things, by the API.
  absl::btree_set<std::string> scopes;
  absl::btree_set<std::string> modules;  // names of their files, without a directory
};

// Those of the processes whose definitions the buffer or trace in the file `path`
// holds. `pids`: of these processes only; empty: of all. Error: the file cannot be read.
absl::StatusOr<SessionFunctions> functions_of_session(
    const std::string& path, const std::vector<pid_t>& pids = {});

// Whether the module in this file is one that the shim takes a demangler from.
bool exports_demangler(const std::string& path);

}  // namespace arctrace::recording
