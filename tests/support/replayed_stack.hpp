// The call stack that a reader of a trace finds.
#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "tests/support/test_session.hpp"

namespace arctrace::testing {

// Replays the records of one writer, in the order of its blocks.
class ReplayedStack {
 public:
  explicit ReplayedStack(const DecodedTrace& trace) {
    for (const DecodedBlock& block : trace.blocks) {
      for (const DecodedRecord& record : block.records) step(record);
    }
  }

  // How STACK records are used; their times may be equal to those of others. kTaken: they
  // give the frames, because records before them are missing.
  enum class Stacks : uint8_t { kIgnored, kChecked, kTaken };

  // Replays in the order of time, for a writer with several blocks at once. `writer` is
  // its number in the session.
  static ReplayedStack in_order_of_time(const DecodedTrace& trace,
                                        Stacks stacks = Stacks::kIgnored,
                                        uint32_t writer = 1) {
    std::vector<DecodedRecord> records;
    for (const DecodedBlock& block : trace.blocks) {
      for (const DecodedRecord& record : block.records) {
        const bool counts =
            record.writer == writer && !record.in_progress &&
            (record.type != ARCTRACE_TYPE_STACK || stacks != Stacks::kIgnored);
        if (counts) records.push_back(record);
      }
    }
    std::stable_sort(
        records.begin(), records.end(),
        [](const DecodedRecord& a, const DecodedRecord& b) { return a.ticks < b.ticks; });
    ReplayedStack replayed;
    for (const DecodedRecord& record : records) {
      if (stacks == Stacks::kTaken && record.type == ARCTRACE_TYPE_STACK) {
        replayed.has_lost_ = true;
      }
      replayed.step(record);
    }
    return replayed;
  }

  const std::vector<uint64_t>& open() const { return open_; }
  const std::vector<uint64_t>& orphans() const { return orphans_; }
  uint32_t unwound() const { return unwound_; }

 private:
  ReplayedStack() = default;

  void step(const DecodedRecord& record) {
    if (has_lost_) REQUIRE(is_opening(record.type));
    switch (record.type) {
      case ARCTRACE_TYPE_LOST:
        has_lost_ = true;
        return;
      case ARCTRACE_TYPE_STACK:
        check_stack(record);
        return;
      case ARCTRACE_TYPE_ENTER:
        open_.push_back(record.u64(0));
        return;
      case ARCTRACE_TYPE_EXIT:
        REQUIRE_FALSE(open_.empty());
        open_.pop_back();
        return;
      case ARCTRACE_TYPE_EXIT_NAMED:
        if (!open_.empty() && open_.back() == record.u64(0)) {
          open_.pop_back();
        } else {
          orphans_.push_back(record.u64(0));
        }
        return;
      case ARCTRACE_TYPE_UNWIND:
        REQUIRE(record.u32(0) <= open_.size());
        open_.resize(open_.size() - record.u32(0));
        unwound_ += record.u32(0);
        return;
      default:
        return;
    }
  }

  // Whether the record may come after a LOST before the frames are known again, if a
  // change of them was lost. Tests therefore lose nothing else.
  static bool is_opening(uint16_t type) {
    return type == ARCTRACE_TYPE_STACK || type == ARCTRACE_TYPE_LOST;
  }

  // S1: STACK agrees with the records before it, unless some were lost.
  void check_stack(const DecodedRecord& record) {
    const uint32_t depth = record.u32(0);
    const uint32_t count = record.u32(4);
    REQUIRE(count <= depth);
    REQUIRE(record.body.size() == 8 + 8 * size_t{count});
    if (has_lost_) {
      REQUIRE(count == depth);
      open_.clear();
      for (uint32_t i = 0; i < count; ++i) open_.push_back(record.u64(8 + 8 * size_t{i}));
      has_lost_ = false;
    }
    REQUIRE(depth == open_.size());
    for (uint32_t i = 0; i < count; ++i) {
      CHECK(record.u64(8 + 8 * size_t{i}) == open_[depth - count + i]);
    }
  }

  bool has_lost_ = false;  // since the last STACK; the open frames are not certain
  std::vector<uint64_t> open_;
  std::vector<uint64_t> orphans_;
  uint32_t unwound_ = 0;
};

}  // namespace arctrace::testing
