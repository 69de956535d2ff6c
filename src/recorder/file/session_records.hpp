// Adds the collector's own records about the session to a RecordBuilder: the system and
// the recorder, clocks, ends of writers and children, losses and totals, and threads of
// processes that were joined.
#pragma once

#include <arctrace/format.h>
#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "src/buffer/buffer_view.hpp"
#include "src/recorder/buffer/clock_source.hpp"
#include "src/recorder/file/trace_file.hpp"

namespace arctrace::recorder {

// The facts about its recorder that a file has.
struct RecorderFacts {
  std::vector<std::string> command_line;
  // The cost of recording here, for HOOK_COSTS; empty: not known.
  std::vector<arctrace_hook_cost> hook_costs = {};
};

// Adds SYSTEM, HOOK_COSTS if they are known, and SESSION started. `detail`:
// ARCTRACE_SESSION_RESUMED if another file may have blocks that are missing here, with
// ARCTRACE_SESSION_ELSEWHERE if some of these may hold definitions.
void add_start(RecordBuilder& records, uint64_t ticks, const RecorderFacts& recorder,
               uint32_t detail = 0);

void add_clock_sync(RecordBuilder& records, const ClockSync& sync);

// Adds CLOCK_WORD.
void add_clock_word(RecordBuilder& records, uint64_t ticks, const ClockWordTimes& times);

void add_session_event(RecordBuilder& records, uint64_t ticks,
                       arctrace_session_event what, uint32_t detail);

// Adds EXEC: process `pid` executed a program at `ticks` or up to `within_ticks` later.
void add_exec(RecordBuilder& records, uint64_t ticks, uint32_t pid,
              uint64_t within_ticks);

// How many of the control events in a control page have become records.
struct ControlEventsSeen {
  uint32_t gate_changes = 0, execs = 0;
};
// Adds ENABLED for each change of the gate or the live filter, and EXEC for each exec,
// that came after `seen`, as far as the buffer still has them.
ControlEventsSeen add_control_events(RecordBuilder& records, const BufferView& view,
                                     ControlEventsSeen seen);

// Adds ENABLED with the classes that are recorded at `ticks`, which is now.
void add_enabled(RecordBuilder& records, const BufferView& view, uint64_t ticks);

void add_child_status(RecordBuilder& records, uint64_t ticks, uint32_t pid,
                      int wait_status);

// Adds WRITER_END, and before it ALIVE with the time at which the writer was last known
// to live, unless that is 0.
void add_writer_end(RecordBuilder& records, uint64_t ticks, uint32_t writer,
                    uint64_t alive_ticks);

// Adds LOST for `count` records that were lost between `since_ticks` and `ticks`.
void add_lost(RecordBuilder& records, uint64_t ticks, uint32_t writer, uint32_t cause,
              uint32_t flags, uint64_t count, uint64_t since_ticks);

// Adds TOTALS of one slot's owner: its identity, the number of records that it has
// written and, if the slot never had another owner, of those that it has lost.
void add_totals(RecordBuilder& records, uint64_t ticks, const BufferView& view,
                arctrace_writer_slot& slot);

// Adds TOTALS and COUNTS of the session: how many records were `written`, the sums of all
// slots and the control page, and the records for which the file had no space.
void add_session_totals(RecordBuilder& records, uint64_t ticks, const BufferView& view,
                        uint64_t written, uint64_t lost_by_file);

// The threads of a process that was joined while it ran. If a thread makes no call while
// it is recorded, only the recorder knows of it.

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
    uint64_t waits_from_ticks = 0;  // since when these are known
  };
  uint32_t pid = 0;
  uint64_t ticks = 0;  // when the threads were read
  std::vector<Thread> threads = {};
};

// Reads /proc/PID/task.
JoinedThreads read_joined_threads(pid_t pid, uint64_t ticks);

// Adds THREAD, with a writer identity of its own, for each thread that has no slot, at
// `ticks`, and the STACK of those that wait. REQUIRES: nothing is recorded any more, so
// that none gets a second identity.
void add_silent_threads(RecordBuilder& records, uint64_t ticks, const BufferView& view,
                        const JoinedThreads& joined);

}  // namespace arctrace::recorder
