// The collector's own records, said about the session: what recorded, where, and when.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "src/buffer/buffer_view.hpp"
#include "src/recorder/buffer/clock_source.hpp"
#include "src/recorder/file/record_builder.hpp"

namespace arctrace {

// SYSTEM and SESSION started. `command_line`: the recorder's own. `resumed`: blocks that
// are missing may be in an earlier collector's file.
void say_start(RecordBuilder& records, uint64_t ticks,
               const std::vector<std::string>& command_line, bool resumed = false);

void say_clock_sync(RecordBuilder& records, const ClockSync& sync);

void say_session_event(RecordBuilder& records, uint64_t ticks,
                       arctrace_session_event what, uint32_t detail);

void say_child_status(RecordBuilder& records, uint64_t ticks, uint32_t pid,
                      int wait_status);

void say_writer_end(RecordBuilder& records, uint64_t ticks, uint32_t writer);

// Lost between `since_ticks`, if that is known, and `ticks`.
void say_lost(RecordBuilder& records, uint64_t ticks, uint32_t writer, uint32_t cause,
              uint32_t flags, uint64_t count, uint64_t since_ticks);

// TOTALS of one slot's owner: what it has written.
void say_totals(RecordBuilder& records, uint64_t ticks, arctrace_writer_slot& slot);

// TOTALS of the session: what all slots, and nobody's, count.
void say_session_totals(RecordBuilder& records, uint64_t ticks, const BufferView& view);

// All records of the session so far, in the buffer or not any more.
uint64_t session_written(const BufferView& view);

// All losses of the session so far, by cause.
std::vector<uint64_t> session_losses(const BufferView& view);

}  // namespace arctrace
