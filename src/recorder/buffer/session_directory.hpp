// Named sessions: their buffer files are in a directory in shared memory that belongs to
// the user, or symbolic links there to buffers in the kernel's memory. The commands find
// sessions here by name or path.
#pragma once

#include <absl/status/statusor.h>
#include <sys/types.h>

#include <string>
#include <vector>

#include "src/recorder/buffer/buffer.hpp"

namespace arctrace::recorder {

// The path of the buffer file of the session `name`: at most 64 letters, digits, '.', '_'
// and '-'. A text with a slash is a path already, and is returned as it is. `create`:
// makes the directory if it is missing. kInvalidArgument: not a valid name.
// kPermissionDenied: the directory belongs to another user (anybody can make one in
// /dev/shm), or others may write to it.
absl::StatusOr<std::string> session_file(const std::string& name, bool create = false);

// Gives the buffer in the kernel's memory at `path` a session's name. kAlreadyExists:
// there is one of that name.
absl::Status name_session(const std::string& name, const std::string& path);

// Removes the session's buffer at `path`, and its name if it is a link.
absl::Status remove_session(const std::string& name, const std::string& path);

// Whether the text can be a session's name: see session_file().
bool is_session_name(const std::string& text);

// Opens the buffer of the session `name`, or at that path, for writing. kNotFound: there
// is no such session.
absl::StatusOr<Buffer> open_session(const std::string& name);

// `path` itself if that file exists, else the buffer file of the session of that name if
// there is one, else `path`.
std::string file_or_session(const std::string& path);
// As file_or_session(), for a name that is to be a session's. kNotFound: it may be one's,
// and there is neither.
absl::StatusOr<std::string> find_session(const std::string& name);

// Whether find_sessions() finds the file by its path as the user's own, whatever it
// contains.
bool is_session_path(const std::string& path);

struct FoundSession {
  std::string name;  // the path if the session has no name
  std::string path;
  uid_t user;  // the file's owner: in shared memory anybody can make a file of our name
};

// The user's sessions, named ones and those that a recorder made for itself, in the order
// of their names.
std::vector<FoundSession> find_sessions();

}  // namespace arctrace::recorder
