// The view `critical-path`: the steps on which the time from begin to end depended.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "reader/analysis/work_loops.hpp"
#include "reader/render/labels.hpp"
#include "reader/report/view.hpp"
#include "reader/streams/critical_path.hpp"

namespace arctrace::reader {

std::unique_ptr<View> make_critical_path_view(const ViewSettings& settings);

// The rows of a critical path as text shows it, in the view and in the summary.
struct CriticalPathRow {
  uint64_t time_ns = 0;
  std::string name;  // of the process, and of the thread if it has another one; escaped
  std::string path;  // escaped; empty outside of recorded functions
  PathState state = PathState::kRunning;
};

// Returns one row for each name, path and state, the longest first: threads of one name
// are added up.
std::vector<CriticalPathRow> critical_path_rows(const CriticalPath& path,
                                                const Replay& replay,
                                                FunctionLabels& labels);

// The time of all threads of one name.
struct CriticalPathName {
  uint64_t time_ns = 0;
  std::string name;  // escaped
  std::string path;  // in which it was longest; escaped, may be empty
  std::array<uint64_t, kPathStates> states = {};  // the parts of its time
};

// Returns one row for each name, the longest first.
std::vector<CriticalPathName> critical_path_by_name(
    const std::vector<CriticalPathRow>& rows);

// "running 12.0 ms, disk 3.00 ms": the states that occur.
std::string path_states_text(const std::array<uint64_t, kPathStates>& states);
// Returns such a text of a whole path.
std::string critical_states_text(const CriticalPath& path);

// Where the path was, and for how long.
using PathEntry = std::pair<std::tuple<ThreadIndex, NodeIndex, PathState>, PathSum>;
// Returns the longest ones first, at most `limit`.
std::vector<PathEntry> longest_entries(const CriticalPath& path, uint64_t limit);
// Writes process, pid, tid, path, state and ns as members of the object that is open.
void write_path_entry_json(const PathEntry& entry, const Replay& replay,
                           FunctionLabels& labels, JsonWriter& json);

// Whether the path to the end tells why the recorded command took as long as it did:
// there are several processes, and they ended by themselves. `session` may be null.
bool explains_duration(const Replay& replay, const Session* session,
                       const Serving& serving);

}  // namespace arctrace::reader
