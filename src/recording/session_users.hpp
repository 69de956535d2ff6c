// Processes that would record into a session, whether they have joined it or not: a
// daemon that has recorded nothing so far is none of the buffer's writers.
#pragma once

#include <cstddef>
#include <string>

namespace arctrace::recording {

// How many living processes, other than this one, were started with the variables of the
// session whose buffer is `path`, as far as this process may know. Reads a file of /proc
// for each process of the system.
size_t count_session_users(const std::string& path);

}  // namespace arctrace::recording
