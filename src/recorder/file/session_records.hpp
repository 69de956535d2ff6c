// Adds the collector's own records about the session to a RecordBuilder: the system and
// the recorder, clocks, ends of writers and children, losses and totals.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "src/buffer/buffer_view.hpp"
#include "src/recorder/buffer/clock_source.hpp"
#include "src/recorder/file/record_builder.hpp"

namespace arctrace {

// Adds SYSTEM and SESSION started. `command_line` is the recorder's own. `resumed`: an
// earlier collector's file may have blocks that are missing here.
void add_start(RecordBuilder& records, uint64_t ticks,
               const std::vector<std::string>& command_line, uint32_t detail = 0);

void add_clock_sync(RecordBuilder& records, const ClockSync& sync);

void add_session_event(RecordBuilder& records, uint64_t ticks,
                       arctrace_session_event what, uint32_t detail);

void add_child_status(RecordBuilder& records, uint64_t ticks, uint32_t pid,
                      int wait_status);

void add_writer_end(RecordBuilder& records, uint64_t ticks, uint32_t writer);

// Adds LOST for `count` records that were lost between `since_ticks` and `ticks`.
void add_lost(RecordBuilder& records, uint64_t ticks, uint32_t writer, uint32_t cause,
              uint32_t flags, uint64_t count, uint64_t since_ticks);

// Adds TOTALS of one slot's owner, with the number of records that it has written.
void add_totals(RecordBuilder& records, uint64_t ticks, arctrace_writer_slot& slot);

// Adds TOTALS of the session: the sums of all slots and the control page.
void add_session_totals(RecordBuilder& records, uint64_t ticks, const BufferView& view,
                        uint64_t lost_to_disk = 0);

}  // namespace arctrace
