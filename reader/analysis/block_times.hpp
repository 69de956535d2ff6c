// The facts that the blocks of a trace tell before their records are read: when each
// thread wrote, and how much.
#pragma once

#include <absl/container/flat_hash_map.h>

#include <cstdint>
#include <span>
#include <vector>

#include "reader/trace/record.hpp"
#include "reader/trace/trace.hpp"

namespace arctrace::reader {

// Bytes of records that were written between two times, evenly as far as is known.
struct WrittenPiece {
  int64_t from_ns = 0, until_ns = 0;
  uint64_t bytes = 0;
};

// The data come from the headers of blocks, that is, from a file's index if it has one. A
// shared block does not tell whose records it has: its bytes count as those of kNoIndex.
// Memory is in proportion to the number of blocks.
class BlockTimes {
 public:
  // Takes time in proportion to the number of blocks.
  explicit BlockTimes(const Trace& trace);

  // The range from the first thread's begin to the last thread's end, as far as
  // definitions and blocks tell.
  TimeRange times() const { return times_; }
  // The bytes of all blocks.
  uint64_t bytes() const { return bytes_; }
  // The bytes of a thread's blocks.
  uint64_t bytes_of(ThreadIndex thread) const;
  // The bytes in a range, nearly: a block that reaches over an end counts by its share of
  // time.
  uint64_t bytes_in(const TimeRange& range) const;
  // The pieces of a thread in order of time, without overlaps. Pieces shorter than
  // `grain_ns` are joined with the next ones up to this length. A piece that touches the
  // range is there whole.
  std::vector<WrittenPiece> pieces(ThreadIndex thread, const TimeRange& range,
                                   uint64_t grain_ns) const;
  // The part of all bytes that was written before `time_ns`, between 0 and 1.
  double share_before(int64_t time_ns) const;

 private:
  struct Written {
    std::vector<WrittenPiece> pieces;  // in order of time, apart
    uint64_t bytes = 0;
  };

  void add(ThreadIndex thread, std::vector<WrittenPiece> pieces);

  TimeRange times_;
  uint64_t bytes_ = 0;
  absl::flat_hash_map<ThreadIndex, Written> written_;
};

}  // namespace arctrace::reader
