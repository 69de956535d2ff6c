// The view "slowest": the calls of some functions that took the longest.
#pragma once

#include <memory>

#include "reader/report/view.hpp"

namespace arctrace::reader {

// For each of the slowest calls its duration and start, thread, arguments and result, and
// the frames that it was in.
//
// JSON: members "calls", the number of all calls of the functions, and "slowest", an
// array of the members that the view "invocations" has without seq, and of path: names of
// the frames around the call, outermost first, and its own.
std::unique_ptr<View> make_slowest_view(const ViewSettings& settings);

}  // namespace arctrace::reader
