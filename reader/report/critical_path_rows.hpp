// The rows of a critical path as text shows it, in the view and in the summary.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "reader/render/function_labels.hpp"
#include "reader/streams/critical_path.hpp"

namespace arctrace::reader {

struct CriticalPathRow {
  uint64_t time_ns = 0;
  std::string name;  // of the process, and of the thread if it has another one; escaped
  std::string path;  // escaped; empty outside of recorded functions
  PathState state = PathState::kRunning;
};

// One row for each name, path and state, the longest first: threads of one name are added
// up.
std::vector<CriticalPathRow> critical_path_rows(const CriticalPath& path,
                                                const Replay& replay,
                                                FunctionLabels& labels);

// All of one name.
struct CriticalPathName {
  uint64_t time_ns = 0;
  std::string name;  // escaped
  std::string path;  // in which it was longest; escaped, may be empty
  std::array<uint64_t, kPathStates> states = {};  // the parts of its time
};

// One row for each name, the longest first.
std::vector<CriticalPathName> critical_path_by_name(
    const std::vector<CriticalPathRow>& rows);

// "running 12.0 ms, disk 3.00 ms": the states that occur.
std::string path_states_text(const std::array<uint64_t, kPathStates>& states);
// The same of all of a path.
std::string critical_states_text(const CriticalPath& path);

}  // namespace arctrace::reader
