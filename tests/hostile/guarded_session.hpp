// Joins a session so that a write outside the buffer faults.
#pragma once

#include <string>

namespace arctrace::testing {

// Joins the session, without attaching a thread, and moves the mapping between two
// regions that nobody may touch.
void join_guarded(const std::string& path);

}  // namespace arctrace::testing
