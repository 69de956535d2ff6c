// The rights with which a traced process opens files, and how the recorder opens files
// with these rights. A recorder that runs as root must not read for a process what that
// process could not read itself.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace arctrace::recorder {

// The rights over files of a process: its user and groups, by the numbers of the
// recorder's user namespace.
struct ProcessRights {
  uid_t user = 0;
  gid_t group = 0;
  std::vector<gid_t> groups;  // supplementary ones
};

// The facts about a process in /proc/PID/status.
struct ProcessStatus {
  uint32_t innermost_pid = 0;  // its number as it sees itself
  ProcessRights rights;        // those for files
};

// `text`: the contents of /proc/PID/status. nullopt: a line is missing.
std::optional<ProcessStatus> parse_process_status(const std::string& text);

// The rights of a user about whom no more is known: without any group.
ProcessRights rights_of_user(uid_t user);

// While the object lives, the calling thread has these rights over files, and no
// capability. Other threads keep their own rights.
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

}  // namespace arctrace::recorder
