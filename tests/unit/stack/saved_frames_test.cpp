// The saved frames of stacks on which a thread does not run at present.
#include "src/stack/saved_frames.hpp"

#include <doctest/doctest.h>

#include <memory>

namespace arctrace::testing {
namespace {

struct Stacks {
  std::unique_ptr<writer::SavedFrames> saved = std::make_unique<writer::SavedFrames>();
  std::unique_ptr<writer::OpenFrames> open = std::make_unique<writer::OpenFrames>();
  std::unique_ptr<writer::FilteredFrames> filtered =
      std::make_unique<writer::FilteredFrames>();

  // Saves a stack with frames number, number + 1, ...
  void save(uint32_t number, uint32_t depth, uint64_t written_in = 1) {
    open->depth = depth;
    for (uint32_t i = 0; i < open->stored(); ++i) {
      open->store(i, number + i, writer::MachineFrame(0x1000 + i));
    }
    saved->save(number, *open, *filtered, written_in);
  }
  // Whether resuming the stack gives these frames.
  bool has(uint32_t number, uint32_t depth) {
    open->depth = 0;
    for (uint32_t i = 0; i < writer::OpenFrames::kMax; ++i) open->frames[i] = {};
    saved->resume(number, *open, *filtered);
    if (open->depth != depth) return false;
    for (uint32_t i = 0; i < open->stored(); ++i) {
      const writer::OpenFrame& frame = open->frames[i];
      if (frame.key != number + i || frame.frame.cfa != 0x1000 + i) return false;
    }
    return true;
  }
};

}  // namespace

TEST_CASE("parked stacks: each comes back as it was, once") {
  Stacks stacks;
  for (uint32_t number = 0; number < 100; ++number) stacks.save(number, number);
  stacks.save(100, 5000);  // deeper than the saved frames
  for (uint32_t number = 100; number-- > 0;) CHECK(stacks.has(number, number));
  CHECK(stacks.has(100, 5000));
  CHECK_FALSE(stacks.saved->has(3));
  CHECK(stacks.has(3, 0));
}

TEST_CASE("parked stacks: what was written since they were left") {
  Stacks stacks;
  stacks.save(1, 2, 8);
  CHECK(stacks.saved->was_written_in(1, 8));
  CHECK_FALSE(stacks.saved->was_written_in(1, 9));
  CHECK_FALSE(stacks.saved->was_written_in(2, 8));
}

TEST_CASE(
    "parked stacks: coroutines are forgotten for want of room, the own stack never") {
  Stacks stacks;
  stacks.save(0, writer::OpenFrames::kMax);
  for (uint32_t round = 0; round < 10; ++round) {
    for (uint32_t number = 1; number <= 100; ++number) stacks.save(number, 200);
  }
  uint32_t kept = 0;
  for (uint32_t number = 1; number <= 100; ++number) {
    if (!stacks.saved->has(number)) continue;
    ++kept;
    CHECK(stacks.has(number, 200));
  }
  CHECK(kept > 10);
  CHECK(kept < 100);
  CHECK(stacks.has(0, writer::OpenFrames::kMax));
}

TEST_CASE("parked stacks: frames from before there was a filter are known to readers") {
  Stacks stacks;
  stacks.save(1, 3);
  stacks.filtered->seen = true;
  stacks.filtered->frames[1].reporting = writer::FilteredFrame::Reporting::kHidden;
  CHECK(stacks.has(1, 3));
  CHECK(stacks.filtered->reported_depth == 3);
  CHECK(stacks.filtered->reported_frames(3) == 3);
}

}  // namespace arctrace::testing
