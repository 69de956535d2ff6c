// Counts the processes that were started with the variables of a session.
#pragma once

#include <cstddef>
#include <string>

namespace arctrace::recording {

// How many living processes, other than this one, were started with the variables of the
// session whose buffer is `path`, as far as this process may know. Reads a file of /proc
// for each process of the system. These are all processes that would record into the
// session, whether they have joined it or not: a daemon that has recorded nothing so far
// is not among the buffer's writers.
size_t count_session_users(const std::string& path);

}  // namespace arctrace::recording
