// Where sessions with a name live: a directory of the user's own in shared memory.
#pragma once

#include <absl/status/statusor.h>

#include <string>
#include <vector>

#include "src/recorder/buffer/buffer.hpp"

namespace arctrace {

// The buffer file of the session `name`: letters, digits, '.', '_' and '-', at most 64. A
// text with a slash is a file's path already. `create`: makes the directory, if need be.
// kInvalidArgument: no such name can be. kPermissionDenied: the directory is not our own
// (in /dev/shm, anybody may have made it) or others may write to it.
absl::StatusOr<std::string> session_file(const std::string& name, bool create = false);

// The buffer of the session `name`, or at that path, to write into. kNotFound: there is
// no such session.
absl::StatusOr<Buffer> open_session(const std::string& name);

// `path` itself if there is such a file, else the file of the session of that name if
// there is one, else `path`.
std::string file_or_session(const std::string& path);

struct FoundSession {
  std::string name;  // of a session without one, its path
  std::string path;
};

// The user's sessions: those with a name, and what recorders made for themselves, in
// order of their names.
std::vector<FoundSession> find_sessions();

}  // namespace arctrace
