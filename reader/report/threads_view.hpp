// The view "threads": what each thread did over time: it ran, waited for a CPU, or was
// blocked.
#pragma once

#include <memory>

#include "reader/report/view.hpp"

namespace arctrace::reader {

// A table for each thread: its states in order of time, or the longest first if they are
// sorted by total. Needs memory for each state; in order of time, for as many as the
// limit has.
//
// JSON: member "threads", an array of pid, tid, name, running_ns, ready_ns (of which
// preempted_ns, and interrupted_ns if that is not 0; if wake-ups are not known, only
// preempted_ns, and the rest is part of blocked_ns), blocked_ns and states.
std::unique_ptr<View> make_threads_view(const ViewSettings& settings);

}  // namespace arctrace::reader
