// The programs whose functions are matched against patterns: a command's program file,
// the libraries that it is linked with, and the functions of the programs in a session.
#pragma once

#include <absl/container/btree_set.h>
#include <absl/status/statusor.h>
#include <sys/types.h>

#include <string>
#include <vector>

#include "src/recording/patterns/function_pattern.hpp"

namespace arctrace::recording {

// The file that a search in PATH finds for `command`, or `command` itself if it has a
// slash. Empty: there is no executable file of this name.
std::string find_program(const std::string& command);

// The paths of the shared libraries that a program is linked with, in the order in which
// the loader would load them. Runs the loader that `program` names, not the program; none
// if it names no loader.
std::vector<std::string> libraries_of(const std::string& program);

// A function or a scope of a program in a session, from the symbol tables of its modules.
struct SessionFunction : FunctionNames {
  // Whether a process that has the function has a demangler, so that its C++ names match
  // there.
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

// The functions of the processes whose definitions the buffer or trace in the file `path`
// has. `pids`: of these processes only; empty: of all. Error: the file cannot be read.
absl::StatusOr<SessionFunctions> functions_of_session(
    const std::string& path, const std::vector<pid_t>& pids = {});

// Whether the module in this file is one that the shim takes a demangler from.
bool exports_demangler(const std::string& path);

}  // namespace arctrace::recording
