#include "reader/trace/buffer_slots.hpp"

#include <arctrace/format.h>

#include <array>
#include <optional>
#include <span>

#include "reader/trace/block_index.hpp"
#include "reader/trace/record_cursor.hpp"

namespace arctrace::reader {
namespace {

struct Losses {
  std::span<const uint64_t> lost, reported;  // by cause
  uint32_t writer = 0;
  uint32_t flags = 0;  // ARCTRACE_LOST_*
};

bool emit_losses(const Losses& losses, uint64_t ticks, const BlockRef& place,
                 Emitter& emitter) {
  for (uint32_t cause = 0; cause < losses.lost.size(); ++cause) {
    if (losses.lost[cause] <= losses.reported[cause]) continue;
    const arctrace_lost_body body{.cause = cause,
                                  .flags = losses.flags | ARCTRACE_LOST_RESIDUAL,
                                  .count = losses.lost[cause] - losses.reported[cause],
                                  .since_ticks = 0};
    RawRecord record;
    record.ticks = ticks;  // the emitter makes it no earlier than the last
    record.writer = losses.writer;
    record.type = ARCTRACE_TYPE_LOST;
    record.body = std::as_bytes(std::span(&body, 1));
    if (!emitter.emit(record, emitter.thread_of(losses.writer), place, false)) {
      return false;
    }
  }
  return true;
}

}  // namespace

void settle_by_slots(const BufferState& buffer, Session& session,
                     Definitions& definitions, WriterFates& fates) {
  for (const Thread& thread : definitions.threads()) {
    fates[thread.writer] = WriterFate::kDead;
  }
  for (const BufferState::Slot& slot : buffer.slots) {
    if (slot.alive) fates[slot.writer] = WriterFate::kAlive;
  }
  for (ThreadIndex i = 0; i < definitions.threads().size(); ++i) {
    Thread& thread = *definitions.mutable_thread(i);
    thread.ended_unseen =
        !thread.of_kernel() && fates[thread.writer] == WriterFate::kDead;
  }
  // The header says what the collector has pinned.
  if (!buffer.collector_alive) session.pinned_bytes = 0;
  session.pinned_bytes = std::max(session.pinned_bytes, buffer.kept_bytes);
  session.processes = buffer.processes;
  session.threads = buffer.threads;
}

void drop_reported_calls(const SessionTotals& totals, Definitions& definitions) {
  for (ThreadIndex i = 0; i < definitions.threads().size(); ++i) {
    Thread& thread = *definitions.mutable_thread(i);
    if (totals.written_by(thread.writer) != thread.waiting_since_written) {
      thread.waiting.clear();
    }
  }
}

bool emit_unreported_losses(const BufferState& buffer, const Session& session,
                            uint64_t chunk, Emitter& emitter) {
  BlockRef place;
  place.kind = BlockRef::Kind::kCollector;
  place.chunk = chunk;
  for (const BufferState::Slot& slot : buffer.slots) {
    const Losses losses{slot.lost, slot.reported, slot.writer, 0};
    if (!emit_losses(losses, session.start_ticks, place, emitter)) return false;
  }
  const std::array<uint64_t, ARCTRACE_LOST_CAUSES> nothing{};
  return emit_losses(
      {buffer.session_lost, nothing, ARCTRACE_WRITER_COLLECTOR, ARCTRACE_LOST_SESSION},
      session.start_ticks, place, emitter);
}

}  // namespace arctrace::reader
