// The view "wakers": which thread woke which, and from which frames.
#pragma once

#include <memory>

#include "reader/report/view.hpp"

namespace arctrace::reader {

// Adds up the wake-ups: a row for each waker with its frames and each woken thread with
// those in which it was blocked. Sorted by the time that it was blocked, or by the number
// of wake-ups if sorted by calls.
//
// JSON: member "wakers", an array of wake_ups, blocked_ns, from_interrupt, waker and
// woken (pid, tid, name, path).
std::unique_ptr<View> make_wakers_view(const ViewSettings& settings);

}  // namespace arctrace::reader
