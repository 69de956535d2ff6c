// Finds the children of processes that are to be joined: those that have begun before are
// not part of the recording, although a server's master leaves all its work to them.
#pragma once

#include <sys/types.h>

#include <map>
#include <string>
#include <vector>

namespace arctrace::recording {

// The living children of each of the processes, by number. This process and those that it
// descends from are left out, because the recorder may be a child itself, of the shell
// that is joined. Reads a file of /proc for each process of the system.
std::map<pid_t, std::vector<pid_t>> children_of(const std::vector<pid_t>& pids);

// Whether the process has the session's buffer in its memory, as far as this process may
// know: the file at `path`, or a map of the kernel's (`is_map`), which has no path there,
// so that it may be another program's.
bool maps_buffer(pid_t pid, const std::string& path, bool is_map);

// Describes children that are not recorded, and the option that records them, too.
// REQUIRES: there is one.
std::string unrecorded_children_text(pid_t parent, const std::vector<pid_t>& children);

}  // namespace arctrace::recording
