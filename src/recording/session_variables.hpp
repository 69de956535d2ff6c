// The environment variables that make programs load the shim and join a session, and the
// options for programs that run already (src/recorder/attach/).
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "src/recorder/buffer/buffer.hpp"
#include "src/recording/events.hpp"
#include "src/recording/options.hpp"

namespace arctrace::recording {

// The path of the shim that belongs to this command. Error: it is not there.
absl::StatusOr<std::string> find_shim();

// The path of libarctrace.so, which the loader finds for this shim.
std::string library_of_shim(const std::string& shim);

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
