// The environment variables that make programs load the shim and join a session, and the
// options for programs that run already (src/recorder/attach/). Also counts the processes
// that were started with these variables, and opens the gate.
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "src/recorder/buffer/buffer.hpp"
#include "src/recording/options.hpp"

namespace arctrace::recording {

// Opens the gate of a session for the classes `on` and closes it for `off`: bits of enum
// arctrace_gate_bit.
void switch_gate(recorder::Buffer& buffer, uint32_t on, uint32_t off);

// As switch_gate(), for the session of this name. Error: there is no such session.
absl::Status switch_session(const std::string& name, uint32_t on, uint32_t off);

// How many living processes, other than this one, were started with the variables of the
// session whose buffer is `path`, as far as this process may know. Reads a file of /proc
// for each process of the system. These are all processes that would record into the
// session, whether they have joined it or not: a daemon that has recorded nothing so far
// is not among the buffer's writers.
size_t count_session_users(const std::string& path);

// The path of the shim that belongs to this command. Error: it is not there.
absl::StatusOr<std::string> find_shim();

// Why the program of `command` cannot be traced: enum arctrace_untraced, or 0.
uint32_t why_untraceable(const std::string& command);

// The shim's options, in the form of their variable. `events` is told which types are not
// known. ResourceExhausted: the options are longer than the variable may be.
absl::StatusOr<std::string> encoded_options(const RecordOptions& options, Events& events);

// The variables, as NAME=VALUE. Errors: those of encoded_options().
absl::StatusOr<std::vector<std::string>> session_variables(const std::string& shim_path,
                                                           const std::string& session,
                                                           const RecordOptions& options,
                                                           Events& events);

// The variables for options.session. Error: there is no such session.
absl::StatusOr<std::vector<std::string>> session_environment(const RecordOptions& options,
                                                             Events& events);

}  // namespace arctrace::recording
