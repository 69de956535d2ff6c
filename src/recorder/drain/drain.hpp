// The collector's work on the buffer, one pass at a time: it reaps the slots of dead
// writers, closes shared blocks that no writer can close, copies closed blocks into the
// file and frees them. It has no thread of its own; Collector calls it. Copies of blocks
// that are still written, and the end of a recording, are in drain_end.cpp.
#pragma once

#include <arctrace/format.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "src/base/memory.hpp"
#include "src/buffer/buffer_view.hpp"
#include "src/protocol/block_state.hpp"
#include "src/recorder/drain/definition_notes.hpp"
#include "src/recorder/file/file_losses.hpp"
#include "src/recorder/file/file_ring.hpp"
#include "src/recorder/file/trace_file.hpp"
#include "src/recorder/jit/code_files.hpp"

namespace arctrace::recorder {

// Hints for writers that look for a free block: where many blocks in a row are in use, as
// those of idle threads are, a writer steps over all of them at once.
//
// In a buffer of so few blocks that one call of a writer checks all of them, there are no
// hints. REQUIRES: the caller is the collector.
class BusyRuns {
 public:
  explicit BusyRuns(const BufferView& view);

  // Notes whether the collector has found a block free in this pass.
  void note(uint32_t index, bool is_free) {
    if (!busy_.empty()) busy_[index] = !is_free;
  }

  // Stores the hints. Costs a read of a byte for each block, and a store for each hint
  // that has changed.
  void publish() const;

 private:
  BufferView view_;
  std::vector<bool> busy_;  // by block
};

// Reaps the slots of dead writers for the collector: closes their blocks, writes their
// end and the losses that no LOST record has counted, and frees the slots.
//
// Losses are marked as reported in the buffer, and slots are freed, only when the file
// has the records (confirm()): if a collector dies before that, the next one writes them
// again. REQUIRES: the caller is the collector.
class Reaper {
 public:
  explicit Reaper(const BufferView& view) : view_(view) {}

  // Adds WRITER_END, TOTALS and LOST records for slots whose owner is dead, and reserves
  // the slots until confirm() or withdraw(). Calls closed(index) for each block that was
  // closed for its dead owner. A slot that is reserved is not for new threads. So at most
  // half, rounded up, of the slots that these could take are reaped in one call, until
  // allow_all() was called.
  void reap_dead(RecordBuilder& records, const std::function<void(uint32_t)>& closed);

  // When the slot's owner, who is dead, was last known to live: at the last pass whose
  // records the file has and that left no dead slot, or when the owner began.
  uint64_t alive_ticks(uint32_t slot) const;

  // From now on all slots may be reaped, because no thread will need one any more.
  void allow_all() { is_last_ = true; }

  // Adds LOST records for the losses that a slot's owner, dead or alive, has not counted
  // in one.
  void report_losses(RecordBuilder& records, uint32_t slot);

  // The file has the records: marks the losses as reported and frees the slots.
  void confirm();
  // The file could not take the records: the losses stay uncounted, and writers may take
  // the slots over.
  void withdraw();

 private:
  struct Reported {
    uint64_t* word;
    uint64_t until;
  };

  void reap(uint32_t slot, RecordBuilder& records,
            const std::function<void(uint32_t)>& closed);

  BufferView view_;
  std::vector<Reported> reported_;
  std::vector<uint32_t> reaped_;
  uint64_t this_pass_ticks_ = 0;
  uint64_t last_pass_ticks_ = 0;  // ticks of the last pass whose records the file has
  uint32_t first_ = 0;            // the slot at which the next call begins
  bool is_last_ = false;
};

// The processes that have a living thread, sorted.
std::vector<uint32_t> living_processes(const BufferView& view);

// The number of processes that have a living thread.
size_t distinct_processes(const BufferView& view);

// Copies a block while its writers may still be writing to it: for the drain, of open
// blocks, and for snapshots.

// How long the copies of several blocks may wait for writers in total: names that a
// hostile process forged could make each of them wait.
struct Patience {
  uint32_t left_ms = 500;
};

// Copies block `index` up to the offset below which no record is begun
// any more. May wait some milliseconds for writers that are active in the block.
std::vector<std::byte> copy_live_block_untrusted(const BufferView& view, uint32_t index,
                                                 Patience& patience);

struct DrainTotals {
  uint64_t records = 0;     // committed user records, in the file
  uint64_t kernel = 0;      // the kernel's records, in the file
  uint64_t torn = 0;        // writers died while these were in progress
  uint64_t unfinished = 0;  // in progress when recording ended
  // Committed records that are still in the buffer, because the file lacks space: user
  // records, and the kernel's.
  uint64_t unsaved = 0, unsaved_kernel = 0;
  uint64_t lost_by_file = 0;  // of a snapshot: both
  bool has_own = false;       // as in BlockContents, of any block
  UntracedPrograms untraced;
  PatchNotes patches;
  ProgramChanges changes;
  DefinedEvents events;
};

// A block in the state in which a pass found it.
struct SeenBlock {
  uint32_t index;
  uint64_t handout;
  BlockState state;
  bool is_definitions = false;
};

// The order in which blocks are written. Definitions come first, so that a file that ends
// after a block has what the block needs.
inline bool is_written_before(const SeenBlock& a, const SeenBlock& b) {
  return std::pair(!a.is_definitions, a.handout) <
         std::pair(!b.is_definitions, b.handout);
}

class Drain {
 public:
  // `ring` cuts `file` into several; null: one file. `code_files` notes the processes,
  // and its names are written at the end of each file; null: the names of generated code
  // are not recorded.
  Drain(const BufferView& view, TraceFile& file, FileRing* ring = nullptr,
        CodeFiles* code_files = nullptr, OnFull on_full = OnFull::kWait);

  // Runs one pass. Returns the number of blocks that it changed; 0 means that there is no
  // more to do. After a write error no block is freed, so that writers find the buffer
  // full and count their losses.
  uint32_t round();

  // Writes the remaining blocks at the end: closed ones, then copies of those that live
  // writers still have, then the losses that no writer has counted. If the disk is full,
  // the file's reserve, and if need be the file's end, is used for definitions, losses
  // and totals, and the records that are not in the file are counted as lost by it.
  // REQUIRES: recording is switched off, and the kernel writer is detached.
  void finish();

  // errno of the first failure to write the file, whatever finish() made of it; or 0.
  int file_error() const { return first_error_ != 0 ? first_error_ : file_.error(); }
  // The number of records for which the file had no space, after finish().
  uint64_t lost_by_file() const { return file_losses_.count_all(); }

  const DrainTotals& totals() const { return totals_; }

  // The processes that had a living thread in the last pass, sorted.
  std::span<const uint32_t> living_processes() const { return live_processes_; }

 private:
  void resume();
  void scan_blocks();
  void list_open_definitions();
  void make_space(std::span<const SeenBlock> unwritten);
  uint32_t close_unreachable();
  bool close_older_chain(uint64_t& later);
  bool is_in_chain(const SeenBlock& block) const;
  bool write_block(const SeenBlock& block);
  void copy_open_definitions(uint64_t interval_ns);
  bool write_live_copy(const SeenBlock& block, Patience& patience);
  void write_image(uint32_t index, uint16_t flags, std::span<std::byte> block,
                   ChunkFacts facts = {});
  void copy_open_blocks();
  void end_full_file();
  uint64_t bytes_of_end() const;
  void write_definitions();
  bool cut_file(uint64_t bytes);
  std::vector<SeenBlock> blocks_with_records() const;
  void flush_records();
  uint64_t ticks() const;

  BufferView view_;
  TraceFile& file_;
  FileRing* const ring_;
  CodeFiles* const code_files_;
  const OnFull on_full_;
  DrainTotals totals_;
  FileLosses file_losses_;
  int first_error_ = 0;    // of a file that end_full_file() has made writable again
  RecordBuilder records_;  // the collector's own, not in the file yet
  BlockWriters writers_;   // of the block that is being written
  Reaper reaper_;
  BusyRuns busy_runs_;
  std::vector<uint32_t> live_processes_;  // sorted
  std::vector<SeenBlock> closed_;
  std::vector<SeenBlock> shared_;
  uint64_t oldest_shared_ = UINT64_MAX;      // smallest hand-out of a shared data block
  std::vector<SeenBlock> open_definitions_;  // SHARED, or CLOSED and named by a writer
  struct OpenCopy {
    uint64_t next = 0;  // the block's `next` when it was copied; 0: not copied
    uint64_t monotonic_ns = 0;
  };
  std::vector<OpenCopy> open_copies_;  // copies of open definitions, by block
  std::vector<bool> named_;            // blocks that a live writer may be writing
  std::vector<bool> owner_died_;       // blocks that were closed for a dead owner
  bool was_cut_short_ = false;         // the last pass could not write all
  // Whether only definitions are written, because the remaining space is reserved for
  // them.
  bool is_reserve_used_ = false;
  std::vector<bool> copied_at_end_;  // blocks of which copy_open_blocks() wrote a copy
};

}  // namespace arctrace::recorder
