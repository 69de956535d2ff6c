// Does all that the commands do with a trace, for the sanitizers to watch.
#pragma once

#include <cstddef>
#include <vector>

namespace arctrace::fuzz {

// Aborts with a message if `holds` is false.
void require(bool holds, const char* what);

// Opens the trace, and if that can be done reads, checks, replays, describes and reports
// it. Returns whether it could be opened.
bool exercise_trace(std::vector<std::byte> bytes);

}  // namespace arctrace::fuzz
