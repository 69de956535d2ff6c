#include "src/collector/drain.hpp"

#include <algorithm>
#include <span>

#include "src/clock.hpp"
#include "src/collector/block_scan.hpp"
#include "src/collector/cpu_blocks.hpp"
#include "src/collector/live_copy.hpp"
#include "src/collector/reaper.hpp"
#include "src/collector/session_records.hpp"
#include "src/loss.hpp"
#include "src/protocol/cpu_chain.hpp"
#include "src/protocol/shared_close.hpp"

namespace arctrace {
namespace {

using A = IpcAtomics;

bool by_handout(const SeenBlock& a, const SeenBlock& b) { return a.handout < b.handout; }

}  // namespace

Drain::Drain(const BufferView& view, TraceFile& file)
    : view_(view),
      file_(file),
      open_copies_(view.geometry().block_count),
      named_(view.geometry().block_count),
      owner_died_(view.geometry().block_count) {}

uint64_t Drain::ticks() const { return read_ticks(view_.geometry().clock); }

uint32_t Drain::round() {
  live_processes_ =
      reap_dead(view_, said_, [this](uint32_t block) { owner_died_[block] = true; });
  scan_blocks();
  // States first, names after: mark_named() explains why this order decides.
  std::fill(named_.begin(), named_.end(), false);
  Recycle<A>::mark_named(view_, [this](uint32_t index) { named_[index] = true; });
  say_cpu_losses(view_, said_, ticks());
  flush_said();
  uint32_t changed = close_unreachable();
  for (const SeenBlock& block : closed_) {
    if (file_.error() != 0) break;
    if (!named_[block.index] && write_block(block)) ++changed;
  }
  copy_open_definitions();
  if (!is_finishing_) feed_cpus(view_);
  return changed;
}

// Lists the blocks that are CLOSED, in the order of their hand-out, and SHARED.
void Drain::scan_blocks() {
  closed_.clear();
  shared_.clear();
  for (uint32_t i = 0; i < view_.geometry().block_count; ++i) {
    const BlockState state = Recycle<A>::state(view_, i);
    if (state.phase != ARCTRACE_PHASE_CLOSED && state.phase != ARCTRACE_PHASE_SHARED) {
      continue;
    }
    const SeenBlock seen{i, view_.block_header(i).handout, state};
    (state.phase == ARCTRACE_PHASE_CLOSED ? closed_ : shared_).push_back(seen);
  }
  std::sort(closed_.begin(), closed_.end(), by_handout);
}

// Open shared blocks that no writer will ever find full: definitions of a process that
// is gone, and a block whose opener died before it could say its name. They are drained
// in the next round.
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
    close_shared<A>(view_, block.index, block.state.generation);
    ++closed;
  }
  return closed;
}

// Whether it is the session's open block, or one of a CPU's.
bool Drain::is_in_chain(const SeenBlock& block) const {
  const uint64_t name = BlockName::make(block.state.generation, block.index);
  return A::load_acquire(view_.control().shared_current) == name ||
         CpuChain<A>::is_named(view_, name);
}

bool Drain::write_block(const SeenBlock& block) {
  if (!Recycle<A>::begin_drain(view_, block.index, block.state)) return false;
  const std::span<std::byte> bytes(view_.block(block.index), view_.geometry().block_size);
  BlockContents contents = scan_block_untrusted(bytes);
  if (A::load_acquire(view_.block_header(block.index).magic) != ARCTRACE_BLOCK_MAGIC) {
    // Its taker died before it opened it, or had begun to wipe it: it holds nothing.
    contents = {view_.geometry().block_size, 0, 0};
  } else if (contents.used > ARCTRACE_BLOCK_HEADER_SIZE) {
    // No live writer names the block: whoever left a record in progress is dead.
    const bool owner_died = owner_died_[block.index] || contents.torn > 0;
    const uint16_t flags = owner_died ? ARCTRACE_CHUNK_OWNER_DIED : 0;
    write_image(block.index, flags, bytes.first(contents.used));
    if (file_.error() != 0) return false;
    totals_.records += contents.records;
    totals_.torn += contents.torn;
  }
  owner_died_[block.index] = false;
  open_copies_[block.index] = {};
  Recycle<A>::finish_drain(view_, block.index, contents.used);
  return true;
}

void Drain::write_image(uint32_t index, uint16_t flags, std::span<std::byte> block) {
  const arctrace_block_header header =
      copy_block_header(*reinterpret_cast<arctrace_block_header*>(block.data()));
  file_.write_chunk(ARCTRACE_CHUNK_BLOCK, flags, index, ticks(),
                    std::as_bytes(std::span(&header, 1)), block.subspan(sizeof header));
}

// Names must not wait for the end of their process: the file may be cut off before.
void Drain::copy_open_definitions() {
  constexpr uint64_t kIntervalNs = 1'000'000'000;
  for (const SeenBlock& block : shared_) {
    arctrace_block_header& header = view_.block_header(block.index);
    if (header.block_class != ARCTRACE_CLASS_DEFINITIONS) continue;
    const uint64_t next = A::load_acquire(header.next);
    OpenCopy& last = open_copies_[block.index];
    const uint64_t now = read_monotonic_ns();
    if (next <= last.next || (last.next != 0 && now - last.monotonic_ns < kIntervalNs)) {
      continue;
    }
    last = {next, now};
    if (!write_live_copy(block)) return;
  }
}

// False: the file takes no more.
bool Drain::write_live_copy(const SeenBlock& block) {
  std::vector<std::byte> copy = copy_live_block_untrusted(view_, block.index);
  const BlockContents contents = scan_block_untrusted(copy);
  if (contents.used <= ARCTRACE_BLOCK_HEADER_SIZE) return true;
  write_image(block.index, ARCTRACE_CHUNK_LIVE_COPY,
              std::span(copy).first(contents.used));
  if (file_.error() != 0) return false;
  totals_.records += contents.records;
  totals_.unfinished += contents.torn;
  return true;
}

void Drain::finish() {
  is_finishing_ = true;
  CpuChain<A>::close_all(view_);
  // Recording is off, so few rounds find all; bounded, should a writer not heed that.
  for (int rounds = 0; rounds < 8 && round() > 0; ++rounds) {
  }
  copy_open_blocks();
  const uint32_t used = Recycle<A>::slots_used(view_);
  for (uint32_t i = 0; i < used; ++i) {
    arctrace_writer_slot& slot = view_.slot(i);
    if (!is_live(A::load_acquire(slot.lock))) continue;
    report_losses(slot, [&](uint32_t cause, uint64_t count) {
      say_lost(said_, ticks(), A::load_relaxed(slot.writer), cause,
               ARCTRACE_LOST_RESIDUAL, count);
      return true;
    });
    say_totals(said_, ticks(), slot);
  }
  for (uint32_t cause = 0; cause < ARCTRACE_LOST_CAUSES; ++cause) {
    const uint64_t count = A::load_relaxed(view_.control().lost[cause]);
    if (count != 0) {
      say_lost(said_, ticks(), ARCTRACE_WRITER_COLLECTOR, cause, ARCTRACE_LOST_SESSION,
               count);
    }
  }
  say_session_totals(said_, ticks(), view_);
  flush_said();
}

// Blocks of writers that outlive the recording: copied, never freed.
void Drain::copy_open_blocks() {
  std::vector<SeenBlock> open;
  for (uint32_t i = 0; i < view_.geometry().block_count; ++i) {
    const BlockState state = Recycle<A>::state(view_, i);
    if (state.phase == ARCTRACE_PHASE_FREE || state.phase == ARCTRACE_PHASE_DRAINING) {
      continue;
    }
    // C2 acquire, matches C1.
    if (A::load_acquire(view_.block_header(i).magic) != ARCTRACE_BLOCK_MAGIC) continue;
    open.push_back({i, view_.block_header(i).handout, state});
  }
  std::sort(open.begin(), open.end(), by_handout);
  for (const SeenBlock& block : open) {
    if (!write_live_copy(block)) return;
  }
}

void Drain::flush_said() {
  const std::vector<std::byte>& bytes = said_.bytes();
  if (bytes.empty()) return;
  file_.write_chunk(ARCTRACE_CHUNK_RECORDS, 0, 0, ticks(), bytes);
  said_.clear();
}

}  // namespace arctrace
