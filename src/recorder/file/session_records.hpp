// Adds the collector's own records about the session to a RecordBuilder: the system and
// the recorder, clocks, ends of writers and children, losses and totals.
#pragma once

#include <arctrace/format.h>

#include <cstdint>
#include <string>
#include <vector>

#include "src/buffer/buffer_view.hpp"
#include "src/recorder/buffer/clock_source.hpp"
#include "src/recorder/file/record_builder.hpp"

namespace arctrace {

// What a file says of its recorder.
struct RecorderFacts {
  std::vector<std::string> command_line;
  // What recording costs here, for HOOK_COSTS; empty: not known.
  std::vector<arctrace_hook_cost> hook_costs = {};
};

// Adds SYSTEM, HOOK_COSTS if they are known, and SESSION started. `detail`:
// ARCTRACE_SESSION_RESUMED if another file may have blocks that are missing here, with
// ARCTRACE_SESSION_ELSEWHERE if some of these may hold definitions.
void add_start(RecordBuilder& records, uint64_t ticks, const RecorderFacts& recorder,
               uint32_t detail = 0);

void add_clock_sync(RecordBuilder& records, const ClockSync& sync);

void add_session_event(RecordBuilder& records, uint64_t ticks,
                       arctrace_session_event what, uint32_t detail);

// Adds EXEC: process `pid` executed a program at `ticks` or up to `within_ticks` later.
void add_exec(RecordBuilder& records, uint64_t ticks, uint32_t pid,
              uint64_t within_ticks);

// How many of the moments in a control page have become records.
struct MomentsSeen {
  uint32_t gate_changes = 0, execs = 0;
};
// Adds ENABLED for each change of the gate or the live filter, and EXEC for each exec,
// that came after `seen`, as far as the buffer still has them.
MomentsSeen add_moments(RecordBuilder& records, const BufferView& view, MomentsSeen seen);

// Adds ENABLED with what is recorded at `ticks`, which is now.
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

// Adds TOTALS of one slot's owner: the number of records that it has written and, if the
// slot never had another owner, of those that it has lost, and who it is.
void add_totals(RecordBuilder& records, uint64_t ticks, const BufferView& view,
                arctrace_writer_slot& slot);

// Adds TOTALS and COUNTS of the session: how many records were `written`, the sums of all
// slots and the control page, and what the file had no room for.
void add_session_totals(RecordBuilder& records, uint64_t ticks, const BufferView& view,
                        uint64_t written, uint64_t lost_by_file);

}  // namespace arctrace
