// Copies a buffer's blocks into a file, with the losses and totals.
#include "src/recorder/snapshot/snapshot.hpp"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <optional>
#include <set>
#include <span>
#include <utility>

#include "src/buffer/clock.hpp"
#include "src/protocol/block_state.hpp"
#include "src/protocol/losses.hpp"
#include "src/recorder/buffer/recording_control.hpp"
#include "src/recorder/drain/cpu_blocks.hpp"
#include "src/recorder/drain/drain.hpp"
#include "src/recorder/file/session_records.hpp"
#include "src/recorder/file/trace_file.hpp"
#include "src/recorder/snapshot/merged_records.hpp"

namespace arctrace::recorder {

void Snapshot::write() {
  CopiedBlocks definitions;
  copy_definitions(definitions);
  for (const SeenBlock& block : list(ARCTRACE_CLASS_DATA)) copy(block);
  copy_definitions(definitions);
  error_ = file_.error();
  if (file_.lacks_space()) end_full_file();
  totals_.unsaved = file_losses_.count();
  totals_.lost_by_file = file_losses_.count_all();
  totals_.unsaved_kernel = totals_.lost_by_file - totals_.unsaved;
  report_balances();
}

void Snapshot::end_full_file() {
  constexpr uint64_t kBytesForEachSlot = 288;  // WRITER_END, TOTALS, LOST
  constexpr uint64_t kBytesForRest = 16u << 10;
  const uint64_t for_each_block =
      sizeof(arctrace_chunk_header) + view_.geometry().block_size;
  const uint64_t needed = kBytesForRest +
                          Recycle<IpcAtomics>::slots_used(view_) * kBytesForEachSlot +
                          unwritten_.size() * for_each_block;
  for (const TraceFile::CutChunk& chunk : file_.cut_end(needed)) {
    if (!chunk.is_data()) {
      file_.write_chunk(static_cast<arctrace_chunk_kind>(chunk.header.kind),
                        chunk.header.flags, chunk.header.index, chunk.header.ticks,
                        chunk.payload);
      continue;
    }
    FileLosses cut;
    cut.add_block_untrusted(chunk.payload);
    totals_.records -= std::min(totals_.records, cut.count());
    file_losses_.add_block_untrusted(chunk.payload);
  }
  file_.clear_error();
  for (const SeenBlock& block : std::exchange(unwritten_, {})) copy(block);
}

// The blocks of one class that have records, in the order of their hand-out.
std::vector<SeenBlock> Snapshot::list(arctrace_block_class wanted) const {
  std::vector<SeenBlock> blocks;
  for (uint32_t i = 0; i < view_.geometry().block_count; ++i) {
    const BlockState state = Recycle<IpcAtomics>::state(view_, i);
    arctrace_block_header& header = view_.block_header(i);
    // C2 acquire, matches C1.
    if (state.phase == ARCTRACE_PHASE_FREE || state.phase == ARCTRACE_PHASE_RESETTING ||
        IpcAtomics::load_acquire(header.magic) != ARCTRACE_BLOCK_MAGIC ||
        IpcAtomics::load_relaxed(header.block_class) != wanted) {
      continue;
    }
    blocks.push_back({i, IpcAtomics::load_relaxed(header.handout), state,
                      wanted == ARCTRACE_CLASS_DEFINITIONS});
  }
  std::sort(blocks.begin(), blocks.end(),
            [](const SeenBlock& a, const SeenBlock& b) { return a.handout < b.handout; });
  return blocks;
}

// Copies the blocks of definitions that have grown since they were noted in `done`, or
// are not in it.
void Snapshot::copy_definitions(CopiedBlocks& done) {
  for (const SeenBlock& block : list(ARCTRACE_CLASS_DEFINITIONS)) {
    const uint64_t next = IpcAtomics::load_acquire(view_.block_header(block.index).next);
    const Copied now{block.state.phase, next};
    const auto [entry, is_new] = done.try_emplace(block.handout, now);
    if (!is_new) {
      Copied& before = entry->second;
      if (before.phase == ARCTRACE_PHASE_CLOSED || before.next == next) continue;
      before = now;
    }
    copy(block);
  }
}

void Snapshot::copy(const SeenBlock& block) {
  std::vector<std::byte> bytes = copy_live_block_untrusted(view_, block.index, patience_);
  // A writer that overwrites a block first wipes its magic. So if the header is unchanged
  // after the copy, the records are whole (SPEC.md LIVE-6).
  std::atomic_thread_fence(std::memory_order_acquire);
  arctrace_block_header& header = view_.block_header(block.index);
  // C2 acquire, matches C1: with the magic of a later generation comes its handout.
  if (IpcAtomics::load_acquire(header.magic) != ARCTRACE_BLOCK_MAGIC ||
      IpcAtomics::load_relaxed(header.handout) != block.handout) {
    return;
  }
  const BlockContents contents = scan_block_untrusted(bytes, &writers_);
  if (contents.used <= ARCTRACE_BLOCK_HEADER_SIZE) return;
  if (block.is_definitions) {
    totals_.untraced.note_untrusted(bytes);
    totals_.patches.note_untrusted(bytes);
    totals_.changes.note_untrusted(bytes);
    totals_.events.note_untrusted(bytes);
    code_files_.note_untrusted(bytes);
  }
  const bool complete = block.state.phase == ARCTRACE_PHASE_CLOSED &&
                        !Recycle<IpcAtomics>::is_named(view_, block.index);
  uint16_t flags = complete ? 0 : ARCTRACE_CHUNK_LIVE_COPY;
  if (complete && contents.torn > 0) flags = ARCTRACE_CHUNK_OWNER_DIED;
  file_.write_chunk(ARCTRACE_CHUNK_BLOCK, flags, block.index, read_ticks(view_),
                    std::span(bytes).first(contents.used), {},
                    {contents.facts, &writers_});
  if (file_.error() != 0) {
    if (block.is_definitions) unwritten_.push_back(block);
    file_losses_.add_block_untrusted(std::span(bytes).first(contents.used));
    return;
  }
  totals_.records += contents.records;
  totals_.has_own |= contents.has_own;
  (complete ? totals_.torn : totals_.unfinished) += contents.torn;
}

// Writes LOST records for the losses that slots count and no LOST record does, of living
// and dead writers, and the totals.
void Snapshot::report_balances() {
  const uint64_t now = read_ticks(view_);
  RecordBuilder records;
  const uint32_t used = Recycle<IpcAtomics>::slots_used(view_);
  for (uint32_t i = 0; i < used; ++i) {
    arctrace_writer_slot& slot = view_.slot(i);
    const uint32_t writer = IpcAtomics::load_relaxed(slot.writer);
    if (writer == 0) continue;
    if (!is_live(IpcAtomics::load_acquire(slot.lock)))
      add_writer_end(records, now, writer, 0);
    for (uint32_t cause = 0; cause < ARCTRACE_LOST_CAUSES; ++cause) {
      const uint64_t reported = ReportedLosses<IpcAtomics>::reported(view_, slot, cause);
      const uint64_t lost = IpcAtomics::load_relaxed(slot.lost[cause]);
      if (lost > reported) {
        add_lost(records, now, writer, cause, ARCTRACE_LOST_RESIDUAL, lost - reported,
                 IpcAtomics::load_relaxed(slot.start_ticks));
      }
    }
    add_totals(records, now, view_, slot);
  }
  for (uint32_t cause = 0; cause < ARCTRACE_LOST_CAUSES; ++cause) {
    const uint64_t lost = IpcAtomics::load_relaxed(view_.control().lost[cause]);
    if (lost != 0) {
      add_lost(records, now, ARCTRACE_WRITER_COLLECTOR, cause, ARCTRACE_LOST_SESSION,
               lost, session_start_ticks(view_));
    }
  }
  report_cpu_losses(view_, records, now);
  file_losses_.report(records, now);
  add_session_totals(records, now, view_, session_written(view_),
                     file_losses_.count_all());
  file_.write_records(now, records.bytes());
}

namespace {

// Writes an earlier file's chunks. Blocks of data that the buffer still has are not
// written twice, and losses that it still counts are not counted twice.
void write_earlier(const BufferView& view, TraceFile& file,
                   std::span<const EarlierChunk> chunks, DrainTotals& totals) {
  std::set<uint64_t> in_buffer;
  for (uint32_t i = 0; i < view.geometry().block_count; ++i) {
    arctrace_block_header& header = view.block_header(i);
    if (IpcAtomics::load_acquire(header.magic) == ARCTRACE_BLOCK_MAGIC) {
      in_buffer.insert(IpcAtomics::load_relaxed(header.handout));
    }
  }
  const MergedRecords records(view, chunks);
  BlockWriters writers;
  for (size_t i = 0; i < chunks.size(); ++i) {
    const EarlierChunk& chunk = chunks[i];
    if (chunk.header.kind == ARCTRACE_CHUNK_RECORDS) {
      file.write_records(chunk.header.ticks, records.payload(i));
      continue;
    }
    if (chunk.header.kind != ARCTRACE_CHUNK_BLOCK) continue;
    const std::optional<uint64_t> data = chunk.data_handout();
    if (data && in_buffer.contains(*data)) continue;
    ChunkFacts facts;
    if (data) {
      std::vector<std::byte> copy = chunk.payload;
      const BlockContents contents = scan_block_untrusted(copy, &writers);
      facts = {contents.facts, &writers};
      totals.records += contents.records;
      totals.torn += contents.torn;
    }
    const uint16_t flags = data ? chunk.header.flags : uint16_t{ARCTRACE_CHUNK_LIVE_COPY};
    file.write_chunk(ARCTRACE_CHUNK_BLOCK, flags, chunk.header.index, chunk.header.ticks,
                     chunk.payload, {}, facts);
  }
}

}  // namespace

DrainTotals write_snapshot_file(const Buffer& buffer, TraceFile& file,
                                const SnapshotPast& past) {
  file.keep_index();
  file.write_header(buffer.header());
  RecordBuilder records;
  // Unless the recorder only takes snapshots, its file has the records that it took out
  // of the buffer.
  const bool is_all =
      past.is_merged || buffer.view().geometry().mode == ARCTRACE_MODE_OVERWRITE;
  const uint32_t elsewhere = past.earlier.empty() ? ARCTRACE_SESSION_ELSEWHERE : 0;
  add_start(records, buffer.header().start_ticks, past.recorder,
            is_all ? 0 : ARCTRACE_SESSION_RESUMED | elsewhere);
  for (const ClockSync& sync : past.syncs) add_clock_sync(records, sync);
  add_session_event(records, read_ticks(buffer.view()), ARCTRACE_SESSION_DUMP_BEGIN, 0);
  file.write_records(read_ticks(buffer.view()), records.bytes());
  file.write_records(read_ticks(buffer.view()), past.records);
  if (past.with_control_events) {
    records.clear();
    add_control_events(records, buffer.view(), past.moments);
    file.write_records(read_ticks(buffer.view()), records.bytes());
  }
  DrainTotals earlier;
  write_earlier(buffer.view(), file, past.earlier, earlier);
  CodeFiles code_files(buffer.header());
  Snapshot snapshot(buffer.view(), file, code_files,
                    buffer.is_copy() ? Patience{0} : Patience{});
  snapshot.write();
  // A copy does not show which processes live, nor whether it comes from this machine.
  if (!buffer.is_copy()) code_files.write(living_processes(buffer.view()), file);
  if (buffer.is_cut_off() && file.error() == 0) file.note_error(ENODATA);
  const int error = snapshot.error() != 0 ? snapshot.error() : file.error();
  file.clear_error();
  records.clear();
  const uint64_t now = read_ticks(buffer.view());
  add_session_event(records, now, ARCTRACE_SESSION_DUMP_END, 0);
  add_session_event(records, now,
                    error == 0 ? ARCTRACE_SESSION_FINISHED : ARCTRACE_SESSION_DISK_FULL,
                    static_cast<uint32_t>(error));
  file.write_records(now, records.bytes());
  file.write_index(now);
  if (error != 0) file.note_error(error);
  DrainTotals totals = snapshot.totals();
  totals.records += earlier.records;
  totals.torn += earlier.torn;
  return totals;
}

std::vector<ClockSync> buffer_syncs(const Buffer& buffer, bool is_live) {
  const arctrace_session_header& header = buffer.header();
  std::vector<ClockSync> syncs = {
      {header.start_ticks, header.start_monotonic_ns, header.start_realtime_ns}};
  if (is_live) syncs.push_back(take_clock_sync(buffer.view().geometry().clock));
  return syncs;
}

}  // namespace arctrace::recorder
