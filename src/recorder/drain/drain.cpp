// One pass of the drain: hints for writers, dead writers, and closed blocks.
#include "src/recorder/drain/drain.hpp"

#include <algorithm>
#include <cerrno>
#include <span>
#include <utility>

#include "src/base/shared_atomics.hpp"
#include "src/buffer/clock.hpp"
#include "src/protocol/block_state.hpp"
#include "src/protocol/cpu_chain.hpp"
#include "src/protocol/handout.hpp"
#include "src/protocol/losses.hpp"
#include "src/recorder/buffer/recording_control.hpp"
#include "src/recorder/drain/cpu_blocks.hpp"
#include "src/recorder/file/session_records.hpp"
#include "src/recorder/file/trace_file.hpp"

namespace arctrace::recorder {

BusyRuns::BusyRuns(const BufferView& view) : view_(view) {
  const Geometry& geometry = view.geometry();
  if (geometry.mode == ARCTRACE_MODE_DROP &&
      geometry.block_count > Handout<IpcAtomics>::kProbesMax) {
    busy_.resize(geometry.block_count);
  }
}

void BusyRuns::publish() const {
  uint32_t run = 0;
  for (auto i = static_cast<uint32_t>(busy_.size()); i > 0; --i) {
    const uint32_t index = i - 1;
    run = busy_[index] ? run + 1 : 0;
    if (index % ARCTRACE_BUSY_RUN_STEP != 0) continue;
    uint32_t& hint = view_.block_header(index).busy_run;
    if (IpcAtomics::load_relaxed(hint) != run) IpcAtomics::store_relaxed(hint, run);
  }
}

void Reaper::reap_dead(RecordBuilder& records,
                       const std::function<void(uint32_t)>& closed) {
  const uint64_t now = read_ticks(view_);
  const uint32_t used = Recycle<IpcAtomics>::slots_used(view_);
  uint32_t to_take = view_.geometry().slot_count - used;
  std::vector<uint32_t> dead;
  for (uint32_t k = 0; k < used; ++k) {
    const uint32_t i = (first_ + k) % used;
    const uint32_t word = IpcAtomics::load_acquire(view_.slot(i).lock);
    if (word == kBeingReaped) {  // a collector that died has stored that
      reap(i, records, closed);
    } else if (!is_live(word)) {
      ++to_take;
      if (word != 0) dead.push_back(i);
    }
  }
  const size_t most = is_last_ ? dead.size() : to_take - to_take / 2;
  const bool leaves_some = dead.size() > most;
  if (leaves_some) {
    first_ = dead[most];
    dead.resize(most);
  }
  for (const uint32_t i : dead) {
    uint32_t& lock = view_.slot(i).lock;
    uint32_t word = IpcAtomics::load_acquire(lock);
    if (word != 0 && !is_live(word) &&
        IpcAtomics::compare_exchange_acq_rel(lock, word, uint32_t{kBeingReaped})) {
      reap(i, records, closed);
    }
  }
  // If slots remain, their owners may have died before `now`.
  if (!leaves_some) this_pass_ticks_ = now;
}

void Reaper::reap(uint32_t index, RecordBuilder& records,
                  const std::function<void(uint32_t)>& closed) {
  arctrace_writer_slot& slot = view_.slot(index);
  DeadSlot<IpcAtomics>::clean_up(view_, index, closed);
  if (const uint32_t writer = IpcAtomics::load_relaxed(slot.writer); writer != 0) {
    const uint64_t now = read_ticks(view_);
    add_writer_end(records, now, writer, alive_ticks(index));
    add_totals(records, now, view_, slot);
  }
  report_losses(records, index);
  reaped_.push_back(index);
}

uint64_t Reaper::alive_ticks(uint32_t index) const {
  const uint64_t started = IpcAtomics::load_relaxed(view_.slot(index).start_ticks);
  return std::min(std::max(last_pass_ticks_, started), read_ticks(view_));
}

void Reaper::report_losses(RecordBuilder& records, uint32_t index) {
  arctrace_writer_slot& slot = view_.slot(index);
  const uint64_t now = read_ticks(view_);
  for_each_unreported_loss(slot, [&](uint32_t cause, uint64_t count) {
    add_lost(records, now, IpcAtomics::load_relaxed(slot.writer), cause,
             ARCTRACE_LOST_RESIDUAL, count, IpcAtomics::load_relaxed(slot.start_ticks));
    uint64_t& reported = slot.reported[cause];
    reported_.push_back({&reported, IpcAtomics::load_relaxed(reported) + count});
  });
}

void Reaper::confirm() {
  last_pass_ticks_ = this_pass_ticks_;
  // J1 release, matches J2.
  for (const Reported& loss : reported_)
    IpcAtomics::store_release(*loss.word, loss.until);
  reported_.clear();
  for (const uint32_t index : reaped_) {
    arctrace_writer_slot& slot = view_.slot(index);
    IpcAtomics::store_relaxed(slot.writer, uint32_t{0});
    IpcAtomics::store_relaxed(slot.process, uint32_t{0});
    IpcAtomics::store_relaxed(slot.tid, uint32_t{0});
    IpcAtomics::store_release(slot.lock, uint32_t{0});
  }
  reaped_.clear();
}

void Reaper::withdraw() {
  reported_.clear();
  for (const uint32_t index : reaped_) {
    IpcAtomics::store_release(view_.slot(index).lock, uint32_t{kOwnerDied});
  }
  reaped_.clear();
}

std::vector<uint32_t> living_processes(const BufferView& view) {
  std::vector<uint32_t> living;
  const uint32_t used = Recycle<IpcAtomics>::slots_used(view);
  for (uint32_t i = 0; i < used; ++i) {
    arctrace_writer_slot& slot = view.slot(i);
    if (is_live(IpcAtomics::load_acquire(slot.lock))) {
      living.push_back(IpcAtomics::load_relaxed(slot.process));
    }
  }
  std::sort(living.begin(), living.end());
  return living;
}

size_t distinct_processes(const BufferView& view) {
  std::vector<uint32_t> living = living_processes(view);
  living.erase(std::unique(living.begin(), living.end()), living.end());
  return living.size();
}

namespace {

constexpr uint64_t kCopyIntervalNs = 1'000'000'000;

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

uint64_t Drain::ticks() const { return read_ticks(view_); }

// Goes on after the disk was full.
void Drain::resume() {
  if (!file_.lacks_space() || on_full_ == OnFull::kStop) return;
  if (on_full_ == OnFull::kRing && ring_ != nullptr) ring_->drop_oldest();
  file_.clear_error();
  if (ring_ != nullptr) ring_->finish_change();
}

uint32_t Drain::round() {
  resume();
  reaper_.reap_dead(records_, [this](uint32_t block) { owner_died_[block] = true; });
  live_processes_ = arctrace::recorder::living_processes(view_);
  scan_blocks();
  // The names are read after the states; mark_named() explains why.
  std::fill(named_.begin(), named_.end(), false);
  Recycle<IpcAtomics>::mark_named(view_,
                                  [this](uint32_t index) { named_[index] = true; });
  const std::vector<uint64_t> lost_by_cpu = report_cpu_losses(view_, records_, ticks());
  flush_records();
  if (file_.error() == 0) confirm_cpu_losses(view_, lost_by_cpu);
  list_open_definitions();
  // Records that the last pass could not write may need definitions of processes that are
  // gone.
  if (ring_ != nullptr && !was_cut_short_) {
    ring_->forget_gone(live_processes_, IpcAtomics::load_acquire(view_.control().next),
                       oldest_shared_);
  }
  uint32_t changed = close_unreachable();
  uint64_t later = UINT64_MAX;  // blocks handed out from then on wait for the next pass
  if (ring_ != nullptr && close_older_chain(later)) ++changed;
  for (size_t i = 0; i < closed_.size() && file_.error() == 0; ++i) {
    const SeenBlock& block = closed_[i];
    if (named_[block.index] || (is_reserve_used_ && !block.is_definitions)) continue;
    if (!block.is_definitions && block.handout > later) continue;
    make_space(std::span(closed_).subspan(i));
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

// Begins the next file of the ring if this one has no space for another block. Blocks of
// definitions among those that are not written yet may have names of this file's records:
// they were open when these records were written, and have been closed since.
void Drain::make_space(std::span<const SeenBlock> unwritten) {
  const uint64_t needed = sizeof(arctrace_chunk_header) + view_.geometry().block_size;
  if (ring_ == nullptr || is_reserve_used_ || ring_->has_space(needed)) return;
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
// the chain. They are drained in the next pass.
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

// When a thread gets own blocks, some of its records stay in the session's open block,
// which may stay open for long. In a file without them its next records would contradict
// what is known of the thread. So if own blocks that were handed out after that block are
// full, that block is closed and written before them: `later` then becomes its hand-out.
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
    totals_.kernel += contents.kernel;
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
    totals_.changes.note_untrusted(copy);
    totals_.events.note_untrusted(copy);
    if (code_files_ != nullptr) code_files_->note_untrusted(copy);
  }
  file_.write_chunk(ARCTRACE_CHUNK_BLOCK, flags, index, ticks(),
                    std::as_bytes(std::span(&header, 1)), rest, facts);
}

void Drain::flush_records() {
  if (ring_ != nullptr) ring_->add_removed(records_, ticks());
  file_.write_records(ticks(), records_.bytes());
  if (ring_ != nullptr && file_.error() == 0) ring_->note_records(records_.bytes());
  records_.clear();
  file_.error() == 0 ? reaper_.confirm() : reaper_.withdraw();
}

}  // namespace arctrace::recorder
