#include "src/recorder/drain/drain.hpp"

#include <algorithm>
#include <cerrno>
#include <span>
#include <utility>

#include "src/buffer/clock.hpp"
#include "src/protocol/cpu_chain.hpp"
#include "src/protocol/shared_close.hpp"
#include "src/recorder/buffer/session_totals.hpp"
#include "src/recorder/drain/cpu_blocks.hpp"
#include "src/recorder/file/block_scan.hpp"
#include "src/recorder/file/session_records.hpp"

namespace arctrace {
namespace {

constexpr uint64_t kCopyIntervalNs = 1'000'000'000;

// Definitions come first, so that a file that ends after a block has what the block
// needs.
bool is_written_before(const SeenBlock& a, const SeenBlock& b) {
  return std::pair(!a.is_definitions, a.handout) <
         std::pair(!b.is_definitions, b.handout);
}

}  // namespace

Drain::Drain(const BufferView& view, TraceFile& file, FileRing* ring,
             CodeFiles* code_files, OnFull on_full)
    : view_(view),
      file_(file),
      ring_(ring),
      code_files_(code_files),
      on_full_(on_full),
      reaper_(view),
      busy_runs_(view),
      open_copies_(view.geometry().block_count),
      named_(view.geometry().block_count),
      owner_died_(view.geometry().block_count),
      copied_at_end_(view.geometry().block_count) {}

uint64_t Drain::ticks() const { return read_ticks(view_.geometry().clock); }

// Goes on after the disk was full.
void Drain::resume() {
  if (!file_.lacks_room() || on_full_ == OnFull::kStop) return;
  if (on_full_ == OnFull::kRing && ring_ != nullptr) ring_->drop_oldest();
  file_.clear_error();
  if (ring_ != nullptr) ring_->finish_change();
}

uint32_t Drain::round() {
  resume();
  reaper_.settle_dead(records_, [this](uint32_t block) { owner_died_[block] = true; });
  live_processes_ = arctrace::living_processes(view_);
  scan_blocks();
  // The names are read after the states; mark_named() explains why.
  std::fill(named_.begin(), named_.end(), false);
  Recycle<IpcAtomics>::mark_named(view_,
                                  [this](uint32_t index) { named_[index] = true; });
  const std::vector<uint64_t> lost_by_cpu = report_cpu_losses(view_, records_, ticks());
  flush_records();
  if (file_.error() == 0) confirm_cpu_losses(view_, lost_by_cpu);
  list_open_definitions();
  // What the last round could not write may need definitions of processes that are gone.
  if (ring_ != nullptr && !was_cut_short_) {
    ring_->forget_gone(live_processes_, IpcAtomics::load_acquire(view_.control().next),
                       oldest_shared_);
  }
  uint32_t changed = close_unreachable();
  uint64_t later = UINT64_MAX;  // blocks handed out from then on wait for the next round
  if (ring_ != nullptr && close_older_chain(later)) ++changed;
  for (size_t i = 0; i < closed_.size() && file_.error() == 0; ++i) {
    const SeenBlock& block = closed_[i];
    if (named_[block.index] || (is_reserve_used_ && !block.is_definitions)) continue;
    if (!block.is_definitions && block.handout > later) continue;
    make_room(std::span(closed_).subspan(i));
    if (!write_block(block)) continue;
    busy_runs_.note(block.index, true);
    ++changed;
  }
  busy_runs_.publish();
  if (!is_reserve_used_) copy_open_definitions(kCopyIntervalNs);
  was_cut_short_ = file_.error() != 0;
  serve_cpus(view_);
  return changed;
}

// Lists the CLOSED blocks, in the order in which they are to be written, and the SHARED
// ones.
void Drain::scan_blocks() {
  closed_.clear();
  shared_.clear();
  oldest_shared_ = UINT64_MAX;
  for (uint32_t i = 0; i < view_.geometry().block_count; ++i) {
    const BlockState state = Recycle<IpcAtomics>::state(view_, i);
    busy_runs_.note(i, state.phase == ARCTRACE_PHASE_FREE);
    if (state.phase != ARCTRACE_PHASE_CLOSED && state.phase != ARCTRACE_PHASE_SHARED) {
      continue;
    }
    const arctrace_block_header& header = view_.block_header(i);
    const SeenBlock seen{i, header.handout, state,
                         header.block_class == ARCTRACE_CLASS_DEFINITIONS};
    (state.phase == ARCTRACE_PHASE_CLOSED ? closed_ : shared_).push_back(seen);
    if (!seen.is_definitions && header.form == ARCTRACE_FORM_FULL) {
      oldest_shared_ = std::min(oldest_shared_, seen.handout);
    }
  }
  std::sort(closed_.begin(), closed_.end(), is_written_before);
}

void Drain::list_open_definitions() {
  open_definitions_.clear();
  for (const std::vector<SeenBlock>* blocks : {&shared_, &closed_}) {
    for (const SeenBlock& block : *blocks) {
      const bool is_open =
          block.state.phase == ARCTRACE_PHASE_SHARED || named_[block.index];
      if (block.is_definitions && is_open) open_definitions_.push_back(block);
    }
  }
}

// Begins the next file of the ring if this one has no room for another block. Blocks of
// definitions among those that are not written yet may have names of this file's records:
// they were open when these were written, and are closed since.
void Drain::make_room(std::span<const SeenBlock> unwritten) {
  const uint64_t needed = sizeof(arctrace_chunk_header) + view_.geometry().block_size;
  if (ring_ == nullptr || is_reserve_used_ || ring_->has_room(needed)) return;
  copy_open_definitions(0);
  Patience patience;
  for (const SeenBlock& block : unwritten) {
    const bool is_copied = named_[block.index];  // as an open one
    if (block.is_definitions && !is_copied && !write_live_copy(block, patience)) return;
  }
  if (code_files_ != nullptr) {
    code_files_->write(live_processes_, file_, ring_->code_names_max());
  }
  ring_->begin_next();
  RecordBuilder enabled;
  add_enabled(enabled, view_, ticks());
  file_.write_records(ticks(), enabled.bytes());
}

// Closes the open shared blocks that no writer will ever find full: definitions of a
// process that is gone, and blocks whose opener died before it put the block's name into
// the chain. They are drained in the next round.
uint32_t Drain::close_unreachable() {
  uint32_t closed = 0;
  for (const SeenBlock& block : shared_) {
    if (named_[block.index]) continue;
    const arctrace_block_header& header = view_.block_header(block.index);
    const bool reachable = header.block_class == ARCTRACE_CLASS_DEFINITIONS
                               ? std::binary_search(live_processes_.begin(),
                                                    live_processes_.end(), header.process)
                               : is_in_chain(block);
    if (reachable) continue;
    close_shared<IpcAtomics>(view_, block.index, block.state.generation);
    ++closed;
  }
  return closed;
}

// A thread that gets own blocks leaves records in the session's open block, which may
// stay open for long. In a file without them its next records would contradict what is
// known of it. So if own blocks that were handed out after that one are full, it is
// closed, and written before they are: `later` becomes its hand-out then.
bool Drain::close_older_chain(uint64_t& later) {
  const uint64_t chain = IpcAtomics::load_acquire(view_.control().shared_current);
  for (const SeenBlock& block : shared_) {
    if (block.is_definitions ||
        BlockName::make(block.state.generation, block.index) != chain) {
      continue;
    }
    const bool is_older =
        std::any_of(closed_.begin(), closed_.end(), [&block](const SeenBlock& full) {
          return !full.is_definitions && full.handout > block.handout;
        });
    if (!is_older) return false;
    close_shared<IpcAtomics>(view_, block.index, block.state.generation);
    later = block.handout;
    return true;
  }
  return false;
}

// Whether `block` is the session's open block or a CPU's.
bool Drain::is_in_chain(const SeenBlock& block) const {
  const uint64_t name = BlockName::make(block.state.generation, block.index);
  return IpcAtomics::load_acquire(view_.control().shared_current) == name ||
         CpuChain<IpcAtomics>::is_named(view_, name);
}

bool Drain::write_block(const SeenBlock& block) {
  if (!Recycle<IpcAtomics>::begin_drain(view_, block.index, block.state)) return false;
  const std::span<std::byte> bytes(view_.block(block.index), view_.geometry().block_size);
  BlockContents contents = scan_block_untrusted(bytes, &writers_);
  if (IpcAtomics::load_acquire(view_.block_header(block.index).magic) !=
      ARCTRACE_BLOCK_MAGIC) {
    // The block holds no records: the writer that took it died before it opened the
    // block, or while it wiped it.
    contents = {.used = view_.geometry().block_size};
  } else if (contents.used > ARCTRACE_BLOCK_HEADER_SIZE) {
    // No live writer names the block, so the writer of a record in progress is dead.
    const bool owner_died = owner_died_[block.index] || contents.torn > 0;
    const uint16_t flags = owner_died ? ARCTRACE_CHUNK_OWNER_DIED : 0;
    write_image(block.index, flags, bytes.first(contents.used),
                {contents.facts, &writers_});
    if (file_.error() != 0) {
      Recycle<IpcAtomics>::cancel_drain(view_, block.index, block.state);
      return false;
    }
    totals_.records += contents.records;
    totals_.torn += contents.torn;
    totals_.has_own |= contents.has_own;
    if (ring_ != nullptr) ring_->note_block(contents);
  }
  owner_died_[block.index] = false;
  open_copies_[block.index] = {};
  Recycle<IpcAtomics>::finish_drain(view_, block.index, contents.used);
  return true;
}

void Drain::write_image(uint32_t index, uint16_t flags, std::span<std::byte> block,
                        ChunkFacts facts) {
  const arctrace_block_header header =
      copy_block_header(*reinterpret_cast<arctrace_block_header*>(block.data()));
  const std::span<const std::byte> rest = block.subspan(sizeof header);
  if (header.block_class == ARCTRACE_CLASS_DEFINITIONS) {
    if (ring_ != nullptr) ring_->remember(header, index, rest);
    const std::vector<std::byte> copy(block.begin(), block.end());
    totals_.untraced.note_untrusted(copy);
    totals_.patches.note_untrusted(copy);
    totals_.events.note_untrusted(copy);
    if (code_files_ != nullptr) code_files_->note_untrusted(copy);
  }
  file_.write_chunk(ARCTRACE_CHUNK_BLOCK, flags, index, ticks(),
                    std::as_bytes(std::span(&header, 1)), rest, facts);
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
  totals_.unfinished += contents.torn;
  totals_.has_own |= contents.has_own;
  if (ring_ != nullptr) ring_->note_block(contents);
  return true;
}

void Drain::finish() {
  CpuChain<IpcAtomics>::close_all(view_);
  // Counted before they are copied: a thread that was preempted after it had seen the
  // gate open may write one more at any time, and what the file has is never less than
  // this.
  const uint64_t written = session_written(view_);
  reaper_.settle_all();
  // Recording is off, so a few rounds find all blocks. The number of rounds is bounded
  // because a hostile writer could go on.
  for (int rounds = 0; rounds < 8 && round() > 0; ++rounds) {
  }
  copy_open_blocks();
  if (file_.error() != 0) end_full_file();
  file_.release_reserve();  // what follows is small, and may take it
  const uint32_t used = Recycle<IpcAtomics>::slots_used(view_);
  for (uint32_t i = 0; i < used; ++i) {
    arctrace_writer_slot& slot = view_.slot(i);
    const uint32_t writer = IpcAtomics::load_relaxed(slot.writer);
    if (writer == 0) continue;  // reaped in a round
    // It died after the last round. Its block is in the file as a copy.
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

// The file cannot take all that is left. What it holds can be read only with definitions,
// and the losses are known only if the file says them, so the reserve is for these.
void Drain::end_full_file() {
  first_error_ = file_.error();
  if (file_.lacks_room()) {
    is_reserve_used_ = true;
    const uint64_t needed = bytes_of_end();
    uint64_t reserve = file_.release_reserve();
    if (first_error_ == EFBIG) reserve = 0;  // it is not the disk that is full
    // The reserve can be too small for the definitions of many processes, and a file
    // system may have none to give. Then data at the file's end makes way for them.
    if (reserve < needed) cut_file(needed - reserve);
    write_definitions();
    // Others write to the disk too.
    if (file_.lacks_room() && cut_file(needed)) write_definitions();
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
  if (!file_.lacks_room()) return;
  // The last records are small, and tried all the same.
  file_.clear_error();
  report_cpu_losses(view_, records_, ticks());
}

// How much room the definitions in the buffer and the records after them need.
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

// Takes `bytes` of data off the end of the file and counts the records as lost, except
// those of copies, whose blocks are still in the buffer. False: there is nothing to take.
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
    make_room({});  // what is open is copied anyhow
    if (!write_live_copy(block, patience)) return;
    copied_at_end_[block.index] = true;
  }
}

void Drain::flush_records() {
  if (ring_ != nullptr) ring_->add_removed(records_, ticks());
  file_.write_records(ticks(), records_.bytes());
  if (ring_ != nullptr && file_.error() == 0) ring_->note_records(records_.bytes());
  records_.clear();
  file_.error() == 0 ? reaper_.confirm() : reaper_.withdraw();
}

}  // namespace arctrace
