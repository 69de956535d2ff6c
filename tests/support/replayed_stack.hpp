// The call stack that a reader of a trace arrives at.
#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "tests/support/test_session.hpp"

namespace arctrace::testing {

// By the records of one writer, in the order of its blocks.
class ReplayedStack {
 public:
  explicit ReplayedStack(const DecodedTrace& trace) {
    for (const DecodedBlock& block : trace.blocks) {
      for (const DecodedRecord& record : block.records) step(record);
    }
  }

  // What becomes of STACK records: their times may be equal to those of others.
  enum class Stacks : uint8_t { kIgnored, kChecked };

  // The same in the order of time, for a writer with several blocks at once.
  static ReplayedStack in_order_of_time(const DecodedTrace& trace,
                                        Stacks stacks = Stacks::kIgnored) {
    std::vector<DecodedRecord> records;
    for (const DecodedBlock& block : trace.blocks) {
      for (const DecodedRecord& record : block.records) {
        const bool counts = !record.in_progress && (record.type != ARCTRACE_TYPE_STACK ||
                                                    stacks == Stacks::kChecked);
        if (counts) records.push_back(record);
      }
    }
    std::stable_sort(
        records.begin(), records.end(),
        [](const DecodedRecord& a, const DecodedRecord& b) { return a.ticks < b.ticks; });
    ReplayedStack replayed;
    for (const DecodedRecord& record : records) replayed.step(record);
    return replayed;
  }

  const std::vector<uint64_t>& open() const { return open_; }
  const std::vector<uint64_t>& orphans() const { return orphans_; }
  uint32_t unwound() const { return unwound_; }

 private:
  ReplayedStack() = default;

  void step(const DecodedRecord& record) {
    switch (record.type) {
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

  // S1: STACK agrees with the records before it.
  void check_stack(const DecodedRecord& record) {
    const uint32_t depth = record.u32(0);
    const uint32_t count = record.u32(4);
    REQUIRE(depth == open_.size());
    REQUIRE(count <= depth);
    REQUIRE(record.body.size() == 8 + 8 * size_t{count});
    for (uint32_t i = 0; i < count; ++i) {
      CHECK(record.u64(8 + 8 * size_t{i}) == open_[depth - count + i]);
    }
  }

  std::vector<uint64_t> open_;
  std::vector<uint64_t> orphans_;
  uint32_t unwound_ = 0;
};

}  // namespace arctrace::testing
