// The collector's work on the buffer, one round at a time: it settles the slots of dead
// writers, closes shared blocks that no writer can close, copies closed blocks into the
// file and frees them. It has no thread of its own; Collector calls it.
#pragma once

#include <arctrace/format.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "src/base/shared_atomics.hpp"
#include "src/buffer/buffer_view.hpp"
#include "src/protocol/recycle.hpp"
#include "src/recorder/drain/busy_runs.hpp"
#include "src/recorder/drain/defined_events.hpp"
#include "src/recorder/drain/live_copy.hpp"
#include "src/recorder/drain/patch_notes.hpp"
#include "src/recorder/drain/reaper.hpp"
#include "src/recorder/drain/untraced_programs.hpp"
#include "src/recorder/file/file_losses.hpp"
#include "src/recorder/file/file_ring.hpp"
#include "src/recorder/file/record_builder.hpp"
#include "src/recorder/file/trace_file.hpp"
#include "src/recorder/jit/code_files.hpp"

namespace arctrace {

struct DrainTotals {
  uint64_t records = 0;     // committed, in the file
  uint64_t torn = 0;        // left in progress by writers that died
  uint64_t unfinished = 0;  // in progress when recording ended
  // Committed, still in the buffer, because the file lacks room: user records, and the
  // kernel's.
  uint64_t unsaved = 0, unsaved_kernel = 0;
  uint64_t lost_by_file = 0;  // of a snapshot: both
  bool has_own = false;       // as in BlockContents, of any block
  UntracedPrograms untraced;
  PatchNotes patches;
  DefinedEvents events;
};

// A block in the state in which a round found it.
struct SeenBlock {
  uint32_t index;
  uint64_t handout;
  BlockState state;
  bool is_definitions = false;
};

class Drain {
 public:
  // `ring` cuts `file` into several; null: one file. `code_files` notes the processes,
  // and is written at the end of each file that is cut; null: the names of generated code
  // are not recorded.
  Drain(const BufferView& view, TraceFile& file, FileRing* ring = nullptr,
        CodeFiles* code_files = nullptr, OnFull on_full = OnFull::kWait);

  // Runs one round. Returns the number of blocks that it changed; 0 means that there is
  // no more to do. After a write error no block is freed, so that writers find the buffer
  // full and count their losses.
  uint32_t round();

  // Writes what is left at the end: closed blocks, then copies of those that live writers
  // still hold, then the losses that no writer has reported. If the disk is full, the
  // file's reserve, and if need be its end, is used for definitions, losses and totals,
  // and the records that are not in the file are counted as lost by it. REQUIRES:
  // recording is switched off, and the kernel writer is detached.
  void finish();

  // errno of the first failure to write the file, whatever finish() made of it; or 0.
  int file_error() const { return first_error_ != 0 ? first_error_ : file_.error(); }
  // Records for which the file had no room, after finish().
  uint64_t lost_by_file() const { return file_losses_.count_all(); }

  const DrainTotals& totals() const { return totals_; }

  // The processes that had a living thread in the last round, sorted.
  std::span<const uint32_t> living_processes() const { return live_processes_; }

 private:
  void resume();
  void scan_blocks();
  void list_open_definitions();
  void make_room(std::span<const SeenBlock> unwritten);
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
  bool was_cut_short_ = false;         // the last round could not write all
  // Whether definitions only are written, because the room is for those.
  bool is_reserve_used_ = false;
  std::vector<bool> copied_at_end_;  // blocks of which copy_open_blocks() wrote a copy
};

}  // namespace arctrace
