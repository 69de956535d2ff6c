// Checks of sums that hold in every report, whatever the trace was.
#pragma once

#include <string>
#include <vector>

#include "reader/replay/replay.hpp"

namespace arctrace::reader {

// A line, `max_lines` at most, for each of these that a finished replay breaks:
// - a thread's root has the time from its first record to its last, and so have all
//   nodes' self times together;
// - a node's total_ns is its self_ns and its children's total_ns;
// - over all threads: a function's calls, self_ns and total_ns are the sums of its
//   parents'; its total_ns - self_ns is the sum of its children's total_ns; the self_ns
//   of all functions and of no function is the time of all threads.
std::vector<std::string> broken_invariants(const Replay& replay, size_t max_lines = 100);

}  // namespace arctrace::reader
