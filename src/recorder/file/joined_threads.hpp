// The threads of a process that was joined as it runs, of which one that makes no call
// while it is recorded is known only to the recorder.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "src/buffer/buffer_view.hpp"
#include "src/recorder/file/record_builder.hpp"

namespace arctrace {

// The process and its threads by the numbers that they have in their own PID namespace.
struct JoinedThreads {
  struct Thread {
    uint32_t tid;
    std::string name;
    pid_t task;  // its number in the recorder's namespace
    // The functions in which it waits all the time, if that is known: their addresses,
    // the outermost first.
    std::vector<uint64_t> waits_in = {};
    bool is_whole = true;           // none are missing further out
    uint64_t waits_from_ticks = 0;  // since when that is known
  };
  uint32_t pid = 0;
  uint64_t ticks = 0;  // when they were looked at
  std::vector<Thread> threads = {};
};

// Reads /proc/PID/task.
JoinedThreads read_joined_threads(pid_t pid, uint64_t ticks);

// Adds THREAD, with a writer identity of its own, for each that has no slot, at `ticks`,
// and the STACK of those that wait.
// REQUIRES: nothing is recorded any more, so that none gets a second identity.
void add_silent_threads(RecordBuilder& records, uint64_t ticks, const BufferView& view,
                        const JoinedThreads& joined);

}  // namespace arctrace
