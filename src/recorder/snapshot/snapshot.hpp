// A snapshot: what is in a buffer at a moment, written as a trace file of its own. The
// buffer stays as it is, and its writers go on.
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
#include "src/recorder/drain/live_copy.hpp"
#include "src/recorder/file/record_builder.hpp"
#include "src/recorder/file/trace_file.hpp"
#include "src/recorder/jit/code_files.hpp"
#include "src/recorder/snapshot/earlier_definitions.hpp"

namespace arctrace {

class Snapshot {
 public:
  // `code_files`: gets to know the processes.
  Snapshot(const BufferView& view, TraceFile& file, CodeFiles& code_files,
           Patience patience = {})
      : view_(view), file_(file), code_files_(code_files), patience_(patience) {}

  // Appends all blocks that hold records, the losses that no LOST record says, and the
  // totals, to a file that has its header. What is overwritten meanwhile is left out:
  // blocks are copied in the order of their hand-out, the oldest first. Definitions go
  // before the records, and again behind them if they have grown, so that all is defined.
  void write();

  const DrainTotals& totals() const { return totals_; }

 private:
  struct Copied {
    uint32_t phase;  // the block's, and its next, when it was copied
    uint64_t next;
  };
  using CopiedBlocks = absl::flat_hash_map<uint64_t, Copied>;  // by hand-out
  std::vector<SeenBlock> list(arctrace_block_class wanted) const;
  void copy_definitions(CopiedBlocks& done);
  void copy(const SeenBlock& block);
  void say_balances();

  BufferView view_;
  TraceFile& file_;
  CodeFiles& code_files_;
  DrainTotals totals_;
  Patience patience_;
};

// What is known of the time before a snapshot.
struct SnapshotPast {
  std::vector<std::string> command_line;  // the recorder's own
  std::vector<ClockSync> syncs;           // in order of time
  std::vector<std::byte> records;         // of the collector
  std::vector<EarlierBlock> definitions = {};
};

// Writes a whole file but for its name: header, past, snapshot, end. An error that the
// file has when this returns means that it ends early.
DrainTotals write_snapshot_file(const Buffer& buffer, TraceFile& file,
                                const SnapshotPast& past);

// The two moments that a buffer alone tells: its start, and now if `is_live`.
std::vector<ClockSync> buffer_syncs(const Buffer& buffer, bool is_live);

}  // namespace arctrace
