// Processes that run already and are joined to a buffer of this command's.
#pragma once

#include <absl/status/statusor.h>
#include <sys/types.h>

#include <vector>

#include "reader/cli/options/record_options.hpp"
#include "reader/cli/record/recording_buffer.hpp"
#include "src/recorder/attach/join_process.hpp"

namespace arctrace::cli {

// What options.pids are told. Error: the shim is not there, the options do not fit, or
// one of the processes cannot be joined; nothing was done to any.
absl::StatusOr<JoinRequest> join_request(const RecordOptions& options,
                                         const Buffer& buffer);

// Joins the processes one after the other, and prints a line about each. Returns those
// that were joined.
std::vector<pid_t> join_processes(const std::vector<pid_t>& pids,
                                  const JoinRequest& request, RecordingBuffer& recording);

// Whether all of them have.
bool have_ended(const std::vector<pid_t>& pids);

}  // namespace arctrace::cli
