// The collector's own records about the session: what recorded, where, and when.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "src/buffer/buffer_view.hpp"
#include "src/recorder/buffer/clock_source.hpp"
#include "src/recorder/file/record_builder.hpp"

namespace arctrace {

// Adds SYSTEM and SESSION started. `command_line` is the recorder's own. `resumed`:
// blocks that are missing may be in an earlier collector's file.
void add_start(RecordBuilder& records, uint64_t ticks,
               const std::vector<std::string>& command_line, bool resumed = false);

void add_clock_sync(RecordBuilder& records, const ClockSync& sync);

void add_session_event(RecordBuilder& records, uint64_t ticks,
                       arctrace_session_event what, uint32_t detail);

void add_child_status(RecordBuilder& records, uint64_t ticks, uint32_t pid,
                      int wait_status);

void add_writer_end(RecordBuilder& records, uint64_t ticks, uint32_t writer);

// Adds LOST for `count` records between `since_ticks`, if that is known, and `ticks`.
void add_lost(RecordBuilder& records, uint64_t ticks, uint32_t writer, uint32_t cause,
              uint32_t flags, uint64_t count, uint64_t since_ticks);

// Adds TOTALS of one slot's owner: what it has written.
void add_totals(RecordBuilder& records, uint64_t ticks, arctrace_writer_slot& slot);

// Adds TOTALS of the session: what all slots count, and the control page.
void add_session_totals(RecordBuilder& records, uint64_t ticks, const BufferView& view);

}  // namespace arctrace
