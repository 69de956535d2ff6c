// A snapshot: the records that a buffer has at a moment, written as a trace file of its
// own. The buffer is only read, and its writers go on. The flight recorder and the
// commands snapshot and recover use it.
#pragma once

#include <absl/container/flat_hash_map.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "src/buffer/buffer_view.hpp"
#include "src/recorder/buffer/buffer.hpp"
#include "src/recorder/buffer/clock_source.hpp"
#include "src/recorder/drain/drain.hpp"
#include "src/recorder/file/earlier_definitions.hpp"
#include "src/recorder/file/file_losses.hpp"
#include "src/recorder/file/session_records.hpp"
#include "src/recorder/file/trace_file.hpp"
#include "src/recorder/jit/code_files.hpp"

namespace arctrace::recorder {

class Snapshot {
 public:
  // `code_files` notes the processes in the definitions.
  Snapshot(const BufferView& view, TraceFile& file, CodeFiles& code_files,
           Patience patience = {})
      : view_(view), file_(file), code_files_(code_files), patience_(patience) {}

  // Appends all blocks that have records, the losses that no LOST record counts yet, and
  // the totals, to a file that has its header. Blocks are copied in the order of their
  // hand-out, the oldest first; a block that is overwritten meanwhile is omitted.
  // Definitions are copied before the records, and again after them if they have grown,
  // so that every record's definitions are in the file. If the file has no space for all,
  // data makes way for definitions and totals, and missing records are lost, of cause
  // file.
  void write();

  const DrainTotals& totals() const { return totals_; }
  // errno of the first failure of the file, or 0.
  int error() const { return error_; }

 private:
  struct Copied {
    uint32_t phase;  // the block's phase and `next` when it was copied
    uint64_t next;
  };
  using CopiedBlocks = absl::flat_hash_map<uint64_t, Copied>;  // by hand-out
  std::vector<SeenBlock> list(arctrace_block_class wanted) const;
  void copy_definitions(CopiedBlocks& done);
  void copy(const SeenBlock& block);
  void end_full_file();
  void report_balances();

  BufferView view_;
  TraceFile& file_;
  CodeFiles& code_files_;
  DrainTotals totals_;
  Patience patience_;
  std::vector<SeenBlock> unwritten_;  // definitions for which there was no space
  FileLosses file_losses_;
  BlockWriters writers_;  // of the block that is being copied
  int error_ = 0;
};

// The parts of a snapshot's file that are not in the buffer: the recorder noted them
// before.
struct SnapshotPast {
  RecorderFacts recorder;
  std::vector<ClockSync> syncs;            // in order of time
  std::vector<std::byte> records;          // the collector's own
  ControlEventsSeen moments = {};          // control events whose records are among these
  bool with_control_events = true;         // the buffer may have more of them
  std::vector<EarlierChunk> earlier = {};  // of a file
  bool is_merged = false;                  // `earlier` is all that the file has
};

// Writes a whole file, except that it does not publish it: header, past, snapshot, end.
// If the file has an error when this returns, it ends early.
DrainTotals write_snapshot_file(const Buffer& buffer, TraceFile& file,
                                const SnapshotPast& past);

// The clock syncs that are known from a buffer alone: its start, and now if `is_live`.
std::vector<ClockSync> buffer_syncs(const Buffer& buffer, bool is_live);

}  // namespace arctrace::recorder
