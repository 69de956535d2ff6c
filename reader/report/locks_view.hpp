// The view "locks": who waited for which lock, and who had it meanwhile.
#pragma once

#include <memory>

#include "reader/report/view.hpp"

namespace arctrace::reader {

// For each lock that a call named in its arguments: waits and holds, the longest ones
// with their threads and frames; and threads that wait for one another at the end.
//
// JSON: members "locks", an array of kind, pid, address, name, acquired, waits,
// waited_ns, holds, held_ns, wakes, longest_wait and longest_hold (duration_ns, start_ns,
// pid, tid, path; null if there is none) and holder (of the longest wait; null if not
// known); "deadlocks", an array of arrays of pid, tid, lock; and "calls_without_lock".
std::unique_ptr<View> make_locks_view(const ViewSettings& settings);

}  // namespace arctrace::reader
