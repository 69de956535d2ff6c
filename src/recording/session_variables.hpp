// What makes a program load the shim and join a session: variables of its environment, or
// for one that runs already, what it is told (src/recorder/attach/).
#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "src/recording/events.hpp"
#include "src/recording/options.hpp"

namespace arctrace::recording {

// The path of the shim that belongs to this command. Error: it is not there.
absl::StatusOr<std::string> find_shim();

// Why the program of `command` cannot be traced: enum arctrace_untraced, or 0.
uint32_t why_untraceable(const std::string& command);

// The shim's options, in the form of their variable. `events` hears what types are not
// known.
// ResourceExhausted: the options are more than the variable holds.
absl::StatusOr<std::string> encoded_options(const RecordOptions& options, Events& events);

// The variables, as NAME=VALUE. Errors: those of encoded_options().
absl::StatusOr<std::vector<std::string>> session_variables(const std::string& shim_path,
                                                           const std::string& session,
                                                           const RecordOptions& options,
                                                           Events& events);

// The same for options.session. Error: there is no such session.
absl::StatusOr<std::vector<std::string>> session_environment(const RecordOptions& options,
                                                             Events& events);

}  // namespace arctrace::recording
