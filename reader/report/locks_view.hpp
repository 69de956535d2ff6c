// The view "locks": who waited for which lock, and who had it meanwhile.
#pragma once

#include <memory>

#include "reader/report/view.hpp"

namespace arctrace::reader {

// Makes the view of each lock that a call named in its arguments: waits and holds, the
// longest ones with their threads and frames; and of threads that wait for one another at
// the end.
//
// JSON: members "locks", an array of kind, pid, address, name, acquired, waits,
// open_waits (those of the waits that had not ended), waited_ns, holds, open_holds,
// held_ns, wakes, first_path, longest_wait and longest_hold (duration_ns, start_ns, open,
// pid, tid, path; null if there is none), holder (of the longest wait; null if not
// known), longest_hold_waiters and waited_for (arrays of pid, tid, path, waited_ns) and
// waited_for_nobody_ns, with which the times of waited_for add up to waited_ns;
// "deadlocks", an array of arrays of pid, tid, lock; "calls_without_lock" and
// "holds_without_end".
std::unique_ptr<View> make_locks_view(const ViewSettings& settings);

}  // namespace arctrace::reader
