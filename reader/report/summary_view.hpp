// The view "summary", which a report shows if no other one is asked for.
#pragma once

#include <memory>

#include "reader/report/view.hpp"

namespace arctrace::reader {

// 40 lines of text at most: how the program ended and, if it was killed, where its
// threads were; losses; the time on the CPU and waiting; what the time was spent on; the
// hottest functions and paths; threads, those of one name as one; what to look at next.
//
// JSON: members "command", "wall_ns", "thread_ns", "cpu_ns" and "off_cpu_ns" (as far as
// the kernel recorded it), "parts" (name, calls, base_ns), "functions" as in the view
// "flat", and "threads", "processes" or "all" as in the view "tree".
std::unique_ptr<View> make_summary_view(const ViewSettings& settings);

}  // namespace arctrace::reader
