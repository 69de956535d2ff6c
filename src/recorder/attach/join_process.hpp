// Makes a process that runs load the shim and join a session.
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>
#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <string>

namespace arctrace {

class PatchImages;

struct JoinRequest {
  std::string shim;     // absolute path of the library
  std::string session;  // path of the buffer
  std::string options;  // the shim's, encoded (src/shim_protocol/options.hpp)
  // Null: no functions are patched.
  std::shared_ptr<PatchImages> patches;
};

struct Joined {
  std::string name;         // of the process
  uint64_t stopped_ns = 0;  // for how long one of its threads stood still
  // And all of them, at most: to leave an earlier session, or to change code.
  uint64_t all_stopped_ns = 0;
  // Functions whose hooks are code stay unrecorded if that could not be changed: why none
  // was; and how many changes were left, because a thread stood there.
  absl::Status code_status;
  uint64_t changes_left = 0;
};

// Whether the process `pid` can probably be joined. Error: why not, a line with what to
// do; nothing was done to it.
absl::Status can_join_process(pid_t pid, const JoinRequest& request);

// Error: why the process `pid` cannot be joined, a line with what to do. Then it goes on
// as it was; it may have loaded the library, which does nothing.
absl::StatusOr<Joined> join_process(pid_t pid, const JoinRequest& request);

}  // namespace arctrace
