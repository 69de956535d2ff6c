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
#include "reader/trace/writer_lists.hpp"

namespace arctrace::reader {

// A place among the records of a thread: those of one moment stand in the order of their
// blocks, and those in exclusive blocks, whose `handout` is 0 here, before all others.
struct ThreadPlace {
  uint64_t ticks = 0, handout = 0;

  bool operator==(const ThreadPlace&) const = default;
  bool operator<(const ThreadPlace& other) const {
    return ticks != other.ticks ? ticks < other.ticks : handout < other.handout;
  }
};

// What is passed over of a thread: its exclusive blocks [first, end), and its records in
// shared blocks in [from, until).
struct SkippedBlocks {
  size_t first = 0, end = 0;
  ThreadPlace from, until;

  bool is_any() const { return from < until; }
};

// A thread's exclusive blocks begin with its stack, and most times what it has in a
// shared block does. So of what it wrote before a range only the last is needed, except
// where a STACK does not tell everything: at the beginning of a program, and up to a fork
// whose child reaches into the range. If it is not known when the child was forked, that
// fork may come after the range. Nothing is passed over of threads that have records
// before that are ARCTRACE_FACT_NEEDED. Of a thread that ended before the range nothing
// else is needed.
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
    // The blocks whose writers `lists` has, in its order. If it is not complete, nothing
    // is passed over of threads that have records in such blocks.
    std::span<const BlockRef> listed;
    const WriterLists& lists;
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
  // Whether a record of the thread in a shared block with this hand-out is passed over.
  bool skips(ThreadIndex thread, uint64_t ticks, uint64_t handout) const {
    const SkippedBlocks& blocks = skipped(thread);
    const ThreadPlace place{ticks, handout};
    return !(place < blocks.from) && place < blocks.until;
  }
  // Whether what the thread writes at that time, which is after the range, is needed: it
  // may tell in which frames a fork child began that reaches into the range.
  bool is_needed_after(ThreadIndex thread, int64_t time_ns) const {
    return thread < whole_until_ns_.size() && time_ns <= whole_until_ns_[thread];
  }
  // Whether the block Source::listed[i] has records that are not passed over.
  bool needs_listed(size_t i) const {
    return i >= needs_listed_.size() || needs_listed_[i];
  }

 private:
  std::vector<SkippedBlocks> skipped_;   // by ThreadIndex
  std::vector<int64_t> whole_until_ns_;  // the same: up to then nothing is passed over
  std::vector<bool> needs_listed_;       // empty: all are needed
};

}  // namespace arctrace::reader
