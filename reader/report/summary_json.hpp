// The sums over a whole trace that each report begins or ends with.
#pragma once

#include "reader/render/json_writer.hpp"
#include "reader/replay/replay.hpp"
#include "reader/trace/trace.hpp"

namespace arctrace::reader {

// Member "summary" of the object that is open: records, lost, lost_by_cause, torn,
// orphans, processes, threads, duration_ns and more. What the replay counts (orphans, and
// frames by what was unusual) is of the threads that were replayed.
void write_summary_json(const Summary& summary, const Replay& replay, bool interrupted,
                        JsonWriter& json);

}  // namespace arctrace::reader
