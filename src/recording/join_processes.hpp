// Processes that run already are joined to a session.
#pragma once

#include <absl/status/statusor.h>
#include <sys/types.h>

#include <string>
#include <vector>

#include "src/recorder/attach/join_process.hpp"
#include "src/recorder/buffer/buffer.hpp"
#include "src/recorder/kernel/kernel_writer.hpp"
#include "src/recording/events.hpp"
#include "src/recording/options.hpp"

namespace arctrace::recording {

// What options.pids are told. Error: the shim is not there, the options do not fit, or
// one of the processes cannot be joined; nothing was done to any.
absl::StatusOr<JoinRequest> join_request(const RecordOptions& options,
                                         const Buffer& buffer, Events& events);

// Joins the processes one after the other. `events` hears a line about each. `bpf`:
// traces them from then on; may be null. Returns those that were joined.
std::vector<pid_t> join_processes(const std::vector<pid_t>& pids,
                                  const JoinRequest& request, KernelWriter* bpf,
                                  Events& events);

// The file of the program that the process executes: its path, or if another file is
// there by now, one that leads to it as long as the process is there.
std::string program_of(pid_t pid);

// Whether all of them have.
bool have_ended(const std::vector<pid_t>& pids);

}  // namespace arctrace::recording
