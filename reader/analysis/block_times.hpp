// What the blocks of a trace tell of it before their records are read: when each thread
// wrote, and how much.
#pragma once

#include <absl/container/flat_hash_map.h>

#include <cstdint>
#include <span>
#include <vector>

#include "reader/trace/record.hpp"
#include "reader/trace/trace.hpp"

namespace arctrace::reader {

// Bytes of records that were written from one moment to another one, evenly as far as is
// known.
struct WrittenPiece {
  int64_t from_ns = 0, until_ns = 0;
  uint64_t bytes = 0;
};

// From the headers of blocks, that is, from a file's index if it has one. Of blocks that
// threads share nobody knows whose records they have: these are those of kNoIndex.
// Memory is in proportion to the number of blocks.
class BlockTimes {
 public:
  // Takes time in proportion to the number of blocks.
  explicit BlockTimes(const Trace& trace);

  // From the begin of the first thread to the end of the last one, as far as definitions
  // and blocks tell.
  TimeRange times() const { return times_; }
  // Of all blocks.
  uint64_t bytes() const { return bytes_; }
  // Of a thread.
  uint64_t bytes_of(ThreadIndex thread) const;
  // Nearly: of blocks that reach over an end, the part by time.
  uint64_t bytes_in(const TimeRange& range) const;
  // In order of time, apart, those that are shorter than `grain_ns` joined with the next
  // ones up to this length. What touches the range is there whole.
  std::vector<WrittenPiece> pieces(ThreadIndex thread, const TimeRange& range,
                                   uint64_t grain_ns) const;
  // The part of all bytes that was written before, between 0 and 1.
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
