// Which blocks the reader of a time range can pass over, so that what it reads of each
// thread still gives the calls that a reader of everything finds in the range.
#pragma once

#include <absl/status/statusor.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "reader/trace/block_index.hpp"
#include "reader/trace/clock_map.hpp"
#include "reader/trace/definitions.hpp"
#include "reader/trace/input.hpp"
#include "reader/trace/shared_writers.hpp"
#include "reader/trace/time_range.hpp"

namespace arctrace::reader {

// The exclusive blocks [first, end) of a thread, which are passed over, and the time in
// which its records in shared blocks are.
struct SkippedBlocks {
  size_t first = 0, end = 0;
  int64_t from_ns = 0, to_ns = 0;
};

// A thread's exclusive blocks begin with its stack. So of the blocks before a range only
// the last ones are needed, except where a STACK does not tell everything: at the
// beginning of a program, and up to a fork whose child is in the range. Nothing is passed
// over of threads that have records before the range that are ARCTRACE_FACT_NEEDED, or no
// exclusive blocks.
class ReadPlan {
 public:
  struct Source {
    Input& input;
    const ClockMap& clock;
    const Definitions& definitions;
    // By writer, each in the order of its serials. Facts that are not known yet are found
    // and noted.
    std::span<std::vector<BlockRef>> exclusive;
    const SharedWriters& shared;
  };

  // Nothing is passed over.
  ReadPlan() = default;
  // Error: the input cannot be read.
  static absl::StatusOr<ReadPlan> make(const Source& source, const TimeRange& range);

  // What is passed over of a thread.
  const SkippedBlocks& skipped(ThreadIndex thread) const {
    static constexpr SkippedBlocks kNothing;
    return thread < skipped_.size() ? skipped_[thread] : kNothing;
  }
  // Whether a record of the thread in a shared block is passed over.
  bool skips(ThreadIndex thread, int64_t time_ns) const {
    const SkippedBlocks& blocks = skipped(thread);
    return time_ns >= blocks.from_ns && time_ns < blocks.to_ns;
  }

 private:
  std::vector<SkippedBlocks> skipped_;  // by ThreadIndex
};

}  // namespace arctrace::reader
