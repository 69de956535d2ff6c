// Copies blocks to which writers may still be writing, and writes the remaining records
// when a recording ends.
#include <time.h>

#include <algorithm>
#include <cerrno>
#include <span>
#include <utility>

#include "src/base/shared_atomics.hpp"
#include "src/buffer/clock.hpp"
#include "src/protocol/block_state.hpp"
#include "src/protocol/cpu_chain.hpp"
#include "src/recorder/buffer/recording_control.hpp"
#include "src/recorder/drain/cpu_blocks.hpp"
#include "src/recorder/drain/drain.hpp"
#include "src/recorder/file/session_records.hpp"
#include "src/recorder/file/trace_file.hpp"

namespace arctrace::recorder {

namespace {

// The offset in an open block below which no record is begun any more. A writer that
// reserved below it has committed its record once it no longer names the block (F1). A
// writer that does not do so in time is stopped or gone, and its record is read as it is.
uint32_t committed_end(const BufferView& view, uint32_t index, Patience& patience) {
  constexpr int kTries = 20;
  constexpr timespec kPause{0, 1'000'000};
  const uint64_t next = IpcAtomics::load_acquire(view.block_header(index).next);
  std::vector<uint32_t*> active;
  Recycle<IpcAtomics>::for_each_active(view,
                                       [&](uint32_t& name) { active.push_back(&name); });
  for (int tries = 0;; ++tries) {
    std::erase_if(active, [&](uint32_t* name) {
      return IpcAtomics::load_acquire(*name) != index + 1;
    });
    if (active.empty() || tries == kTries || patience.left_ms == 0) break;
    --patience.left_ms;
    nanosleep(&kPause, nullptr);
  }
  return static_cast<uint32_t>(std::min<uint64_t>(next, view.geometry().block_size));
}

}  // namespace

std::vector<std::byte> copy_live_block_untrusted(const BufferView& view, uint32_t index,
                                                 Patience& patience) {
  const uint32_t committed_until = committed_end(view, index, patience);
  return copy_live_block_untrusted(view.block(index), view.geometry().block_size,
                                   committed_until);
}

// Definitions are copied before their process ends, because the file may be cut off
// first.
void Drain::copy_open_definitions(uint64_t interval_ns) {
  Patience patience;
  for (const SeenBlock& block : open_definitions_) {
    const uint64_t next = IpcAtomics::load_acquire(view_.block_header(block.index).next);
    OpenCopy& last = open_copies_[block.index];
    const uint64_t now = read_monotonic_ns();
    if (next <= last.next || (last.next != 0 && now - last.monotonic_ns < interval_ns)) {
      continue;
    }
    if (!write_live_copy(block, patience)) return;
    last = {next, now};
  }
}

// False: the file has failed.
bool Drain::write_live_copy(const SeenBlock& block, Patience& patience) {
  std::vector<std::byte> copy = copy_live_block_untrusted(view_, block.index, patience);
  const BlockContents contents = scan_block_untrusted(copy, &writers_);
  if (contents.used <= ARCTRACE_BLOCK_HEADER_SIZE) return true;
  write_image(block.index, ARCTRACE_CHUNK_LIVE_COPY, std::span(copy).first(contents.used),
              {contents.facts, &writers_});
  if (file_.error() != 0) return false;
  totals_.records += contents.records;
  totals_.kernel += contents.kernel;
  totals_.unfinished += contents.torn;
  totals_.has_own |= contents.has_own;
  if (ring_ != nullptr) ring_->note_block(contents);
  return true;
}

void Drain::finish() {
  CpuChain<IpcAtomics>::close_all(view_);
  // Records are counted before they are copied: a thread that was preempted after it had
  // seen the gate open may write one more at any time, and the file never has fewer than
  // this count.
  const uint64_t written = session_written(view_);
  reaper_.allow_all();
  // Recording is off, so a few passes find all blocks. Their number is bounded because a
  // hostile writer could go on.
  for (int rounds = 0; rounds < 8 && round() > 0; ++rounds) {
  }
  copy_open_blocks();
  if (file_.error() != 0) end_full_file();
  file_.release_reserve();  // what follows is small, and may take it
  const uint32_t used = Recycle<IpcAtomics>::slots_used(view_);
  for (uint32_t i = 0; i < used; ++i) {
    arctrace_writer_slot& slot = view_.slot(i);
    const uint32_t writer = IpcAtomics::load_relaxed(slot.writer);
    if (writer == 0) continue;  // reaped in a pass
    // The writer died after the last pass. Its block is in the file as a copy.
    if (!is_live(IpcAtomics::load_acquire(slot.lock)))
      add_writer_end(records_, ticks(), writer, reaper_.alive_ticks(i));
    reaper_.report_losses(records_, i);
    add_totals(records_, ticks(), view_, slot);
  }
  for (uint32_t cause = 0; cause < ARCTRACE_LOST_CAUSES; ++cause) {
    const uint64_t count = IpcAtomics::load_relaxed(view_.control().lost[cause]);
    if (count != 0) {
      const uint64_t now = ticks();
      add_lost(records_, now, ARCTRACE_WRITER_COLLECTOR, cause, ARCTRACE_LOST_SESSION,
               count, session_start_ticks(view_));
    }
  }
  file_losses_.report(records_, ticks());
  add_session_totals(records_, ticks(), view_, written, file_losses_.count_all());
  flush_records();
}

// Handles that the file has no space for all remaining blocks. Its contents can be read
// only with definitions, and losses are known only if the file has their records, so the
// reserve is for these.
void Drain::end_full_file() {
  first_error_ = file_.error();
  if (file_.lacks_space()) {
    is_reserve_used_ = true;
    const uint64_t needed = bytes_of_end();
    uint64_t reserve = file_.release_reserve();
    if (first_error_ == EFBIG) reserve = 0;  // it is not the disk that is full
    // The reserve can be too small for the definitions of many processes, and a file
    // system may have none to give. Then data at the file's end is cut off for them.
    if (reserve < needed) cut_file(needed - reserve);
    write_definitions();
    // Other processes write to the disk, too.
    if (file_.lacks_space() && cut_file(needed)) write_definitions();
  }
  const uint64_t cut = file_losses_.count();
  const uint64_t cut_all = file_losses_.count_all();
  Patience patience;
  for (const SeenBlock& block : blocks_with_records()) {
    if (block.is_definitions || copied_at_end_[block.index]) continue;
    file_losses_.add_block_untrusted(
        copy_live_block_untrusted(view_, block.index, patience));
  }
  totals_.unsaved = file_losses_.count() - cut;
  totals_.unsaved_kernel = file_losses_.count_all() - cut_all - totals_.unsaved;
  if (!file_.lacks_space()) return;
  // The last records are small, so they are tried all the same.
  file_.clear_error();
  report_cpu_losses(view_, records_, ticks());
}

// The space that the definitions in the buffer and the records after them need.
uint64_t Drain::bytes_of_end() const {
  constexpr uint64_t kBytesForEachSlot = 288;  // WRITER_END, TOTALS, LOST
  constexpr uint64_t kBytesForRest = 16u << 10;
  uint64_t bytes =
      kBytesForRest + Recycle<IpcAtomics>::slots_used(view_) * kBytesForEachSlot;
  for (const SeenBlock& block : blocks_with_records()) {
    if (!block.is_definitions) continue;
    const std::span<std::byte> image(view_.block(block.index),
                                     view_.geometry().block_size);
    bytes += sizeof(arctrace_chunk_header) + scan_block_untrusted(image).used;
  }
  return bytes;
}

void Drain::write_definitions() {
  file_.clear_error();
  if (ring_ != nullptr) ring_->finish_change();
  round();
  copy_open_blocks();
}

// Cuts `bytes` of data off the end of the file and counts its records as lost, except
// those of copies, whose blocks are still in the buffer. False: there is nothing to cut
// off.
bool Drain::cut_file(uint64_t bytes) {
  const std::vector<TraceFile::CutChunk> chunks = file_.cut_end(bytes);
  for (const TraceFile::CutChunk& chunk : chunks) {
    if (!chunk.is_data()) {
      file_.write_chunk(static_cast<arctrace_chunk_kind>(chunk.header.kind),
                        chunk.header.flags, chunk.header.index, chunk.header.ticks,
                        chunk.payload);
      continue;
    }
    FileLosses cut;
    cut.add_block_untrusted(chunk.payload);
    totals_.records -= std::min(totals_.records, cut.count());
    totals_.kernel -= std::min(totals_.kernel, cut.count_all() - cut.count());
    const bool is_copy = (chunk.header.flags & ARCTRACE_CHUNK_LIVE_COPY) != 0;
    if (is_copy && chunk.header.index < copied_at_end_.size()) {
      copied_at_end_[chunk.header.index] = false;
    } else {
      file_losses_.add_block_untrusted(chunk.payload);
    }
  }
  return !chunks.empty();
}

// The blocks that the file does not have, except as copies, in the order in which they
// are to be written.
std::vector<SeenBlock> Drain::blocks_with_records() const {
  std::vector<SeenBlock> open;
  for (uint32_t i = 0; i < view_.geometry().block_count; ++i) {
    const BlockState state = Recycle<IpcAtomics>::state(view_, i);
    if (state.phase == ARCTRACE_PHASE_FREE || state.phase == ARCTRACE_PHASE_DRAINING) {
      continue;
    }
    // C2 acquire, matches C1.
    if (IpcAtomics::load_acquire(view_.block_header(i).magic) != ARCTRACE_BLOCK_MAGIC)
      continue;
    const arctrace_block_header& header = view_.block_header(i);
    open.push_back(
        {i, header.handout, state, header.block_class == ARCTRACE_CLASS_DEFINITIONS});
  }
  std::sort(open.begin(), open.end(), is_written_before);
  return open;
}

// Copies the blocks of writers that outlive the recording. They are never freed.
void Drain::copy_open_blocks() {
  Patience patience;
  for (const SeenBlock& block : blocks_with_records()) {
    if (file_.error() != 0) return;
    if (copied_at_end_[block.index] || (is_reserve_used_ && !block.is_definitions)) {
      continue;
    }
    make_space({});  // open blocks are copied anyhow
    if (!write_live_copy(block, patience)) return;
    copied_at_end_[block.index] = true;
  }
}

}  // namespace arctrace::recorder
