// The thread that a signal most likely ended, for recordings without signals.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "reader/analysis/thread_ends.hpp"
#include "reader/replay/replay.hpp"

namespace arctrace::reader {

// Whether the kernel sends this signal because of what the thread's instruction did.
// Programs may send it as well.
bool is_fault(int signal);

// Why a thread is the likely one.
enum class LikelyBecause : uint8_t {
  kOnly,        // no other thread of the process made calls that are recorded
  kAborts,      // it alone was in abort(), or another function that sends the signal
  kNotWaiting,  // it alone was in no call in which threads wait
};

struct LikelyThread {
  ThreadIndex thread = kNoIndex;
  LikelyBecause because = LikelyBecause::kOnly;
  size_t threads = 1;  // that may have been it
};

// Returns the thread of the process that `signal` ended, without that of its ends which
// were announced, as far as what threads did last tells it. nullopt: several threads are
// as likely, or the signal comes from outside, so that any thread may have got it.
// `replay` is finished.
std::optional<LikelyThread> likely_thread(int signal, const ThreadEnds& ends,
                                          const Replay& replay);

// Where there is no likely thread of a fault: the threads, two or more, that were in no
// call that waits, of which each may have got it. Which of them wrote the last record
// tells nothing: the others go on while the kernel takes the process down.
std::vector<ThreadIndex> possible_threads(int signal, const ThreadEnds& ends,
                                          const Replay& replay);

}  // namespace arctrace::reader
