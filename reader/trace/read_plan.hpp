// Plans which blocks the reader of a time range can skip, so that the records that it
// reads of each thread still give the calls that a reader of everything finds in the
// range.
#pragma once

#include <absl/status/statusor.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "reader/trace/block_index.hpp"
#include "reader/trace/block_writers.hpp"
#include "reader/trace/definitions.hpp"
#include "reader/trace/file_blocks.hpp"
#include "reader/trace/input.hpp"
#include "reader/trace/record.hpp"
#include "reader/trace/session.hpp"

namespace arctrace::reader {

// A place among the records of a thread: records of one time are in the order of their
// blocks, and those in exclusive blocks, whose `handout` is 0 here, come before all
// others.
struct ThreadPlace {
  uint64_t ticks = 0, handout = 0;

  bool operator==(const ThreadPlace&) const = default;
  bool operator<(const ThreadPlace& other) const {
    return ticks != other.ticks ? ticks < other.ticks : handout < other.handout;
  }
};

// The skipped part of a thread: its exclusive blocks [first, end), and its records in
// shared blocks in [from, until).
struct SkippedBlocks {
  size_t first = 0, end = 0;
  ThreadPlace from, until;

  bool is_any() const { return from < until; }
};

// A thread's exclusive blocks begin with its stack, and so do most times its records in a
// shared block. So of the blocks before a range only the last one is needed, except where
// a STACK does not tell everything: at the beginning of a program, and up to a fork whose
// child reaches into the range. If it is not known when the child was forked, that fork
// may come after the range. Nothing is skipped of threads that have records before the
// range that are ARCTRACE_FACT_NEEDED. If a thread ended before the range, nothing else
// of it is needed.
class ReadPlan {
 public:
  struct Source {
    Input& input;
    const ClockMap& clock;
    const Definitions& definitions;
    // The exclusive blocks by writer, each in the order of its serials. Facts that are
    // not known yet are found and noted.
    std::span<std::vector<BlockRef>> exclusive;
    const SharedWriters& shared;
    // The blocks whose writers `lists` has, in its order. If it is not complete, nothing
    // is skipped of threads that have records in such blocks.
    std::span<const BlockRef> listed;
    const WriterLists& lists;
  };

  // Makes a plan that skips nothing.
  ReadPlan() = default;
  // Error: the input cannot be read.
  static absl::StatusOr<ReadPlan> make(const Source& source, const TimeRange& range);

  // The skipped part of a thread.
  const SkippedBlocks& skipped(ThreadIndex thread) const {
    static constexpr SkippedBlocks kNothing;
    return thread < skipped_.size() ? skipped_[thread] : kNothing;
  }
  // Whether a record of the thread in a shared block with this hand-out is skipped.
  bool skips(ThreadIndex thread, uint64_t ticks, uint64_t handout) const {
    const SkippedBlocks& blocks = skipped(thread);
    const ThreadPlace place{ticks, handout};
    return !(place < blocks.from) && place < blocks.until;
  }
  // Whether the thread's records at that time, which is after the range, are needed: they
  // may tell the frames in which a fork child began that reaches into the range.
  bool is_needed_after(ThreadIndex thread, int64_t time_ns) const {
    return thread < whole_until_ns_.size() && time_ns <= whole_until_ns_[thread];
  }
  // Whether the block Source::listed[i] has records that are not skipped.
  bool needs_listed(size_t i) const {
    return i >= needs_listed_.size() || needs_listed_[i];
  }

 private:
  std::vector<SkippedBlocks> skipped_;   // by ThreadIndex
  std::vector<int64_t> whole_until_ns_;  // up to then nothing of it is skipped
  std::vector<bool> needs_listed_;       // empty: all are needed
};

}  // namespace arctrace::reader
