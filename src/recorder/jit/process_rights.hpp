// The rights with which a traced process opens files, and how the recorder opens files
// with them. A recorder that runs as root must not read for a process what that process
// could not read itself.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace arctrace {

// The numbers are those of the recorder's user namespace.
struct ProcessRights {
  uid_t user = 0;
  gid_t group = 0;
  std::vector<gid_t> groups;  // supplementary ones
};

// What /proc/PID/status says of a process.
struct ProcessStatus {
  uint32_t innermost_pid = 0;  // its number as it sees itself
  ProcessRights rights;        // those for file systems
};

// `text`: the contents of /proc/PID/status. nullopt: a line is missing.
std::optional<ProcessStatus> parse_process_status(const std::string& text);

// The rights of a user of whom no more is known: those of no group.
ProcessRights rights_of_user(uid_t user);

// While it lives, the calling thread has these rights over files, and no capability. It
// is the thread's alone: other threads keep theirs.
class ActingWithRights {
 public:
  explicit ActingWithRights(const ProcessRights& rights);
  ActingWithRights(const ActingWithRights&) = delete;
  ActingWithRights& operator=(const ActingWithRights&) = delete;
  ~ActingWithRights();

  // False: the kernel did not permit it, and nothing must be opened for the process. A
  // recorder without privileges keeps its own rights, which are no more than its user's.
  bool is_acting() const { return is_acting_; }

 private:
  bool is_privileged_ = false;
  bool is_acting_ = false;
  uid_t user_before_ = 0;
  gid_t group_before_ = 0;
  std::vector<gid_t> groups_before_;
  uint64_t effective_before_ = 0;
};

// Opens the file `path` below the directory `root`, out of which neither links nor ".."
// lead, for reading with the rights of a process. It must be a regular file of that user,
// on a disk or in memory, with one name. Returns a descriptor, or -1.
int open_for_process_untrusted(int root, const std::string& path,
                               const ProcessRights& rights);

}  // namespace arctrace
