// The view "log-rt": call trees in the columns of IBM's JPROF, for programs to read.
#pragma once

#include <memory>

#include "reader/report/view.hpp"

namespace arctrace::reader {

// Columns: level, calls, calls made from it, self ns, dispatches and interrupts seen (0:
// not recorded; those that woke a thread if interrupts have no records of their own), and
// the name, which is the rest of the line.
//
// JSON: member "log_rt", an array of the same rows.
std::unique_ptr<View> make_log_rt_view(const ViewSettings& settings);

}  // namespace arctrace::reader
