// The view "flow": every entry, exit and record in order of time.
#pragma once

#include <memory>

#include "reader/report/view.hpp"

namespace arctrace::reader {

// Writes while the trace is replayed. Times are those of the records; the frames that are
// open at the end come last.
//
// JSON: member "flow", an array of time_ns, pid, tid, depth, type, and what the type has;
// and member "open_frames", an array of start_ns, pid, tid, depth, name.
std::unique_ptr<View> make_flow_view(const ViewSettings& settings);

}  // namespace arctrace::reader
