// The view "slowest": the calls of some functions that took the longest.
#pragma once

#include <memory>

#include "reader/report/view.hpp"

namespace arctrace::reader {

// For each of the slowest calls its duration and start, thread, arguments and result, and
// the frames that it was in; then why the slowest 1 % of each function's calls are slow,
// against its median calls.
//
// JSON: members "calls", the number of all calls of the functions, and "slowest", an
// array of the members that the view "invocations" has without seq, and of path: names of
// the frames around the call, outermost first, and its own. "why" has for each function
// of which enough calls were seen as a whole name, module, calls, slow_calls, slow_ns,
// median_calls, median_ns, and "causes": path (names below the function, outermost
// first), state, slow_ns, median_ns, and more_ns, the difference of a slow call to a
// median one on average. The other times are sums, to which the causes' add up. Without
// the kernel's records the state is null.
std::unique_ptr<View> make_slowest_view(const ViewSettings& settings);

}  // namespace arctrace::reader
