// What a replay says of a thread once it is finished.
#pragma once

#include <cstdint>

#include "reader/replay/call_tree.hpp"
#include "reader/trace/record.hpp"

namespace arctrace::reader {

// One replayed thread.
struct ThreadTree {
  ThreadIndex thread;
  NodeIndex root;
  // The time of the first record of the thread, its own or the kernel's about it, and its
  // end or the recording's, cut at the filter's time range. On the wall clock the root's
  // total_ns is the difference; of an `Interrupt` thread it is the time of its calls.
  int64_t start_ns, stop_ns;
  uint64_t end_within_ns;  // it may have ended that much before its end
};

}  // namespace arctrace::reader
