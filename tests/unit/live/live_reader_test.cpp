// Ticks: state of a live session's replay that persists from one to the next.
#include "reader/live/live_reader.hpp"

#include <doctest/doctest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/trace_builder.hpp"
#include "tests/unit/live/changing_input.hpp"

namespace arctrace::testing {
namespace {

constexpr uint64_t kOuter = 0x1000, kInner = 0x2000;

// Notes the functions that ended, and those that are open at the end of the tick.
class NotedTick : public reader::LiveTick, public reader::ReplayListener {
 public:
  reader::ReplayListener* call_listener() override { return this; }
  void begin(const reader::Trace& /*trace*/, reader::Replay& replay) override {
    replay_ = &replay;
    left.clear();
  }
  void end(const reader::Trace& /*trace*/, reader::Replay& /*replay*/,
           int64_t /*from_ns*/, int64_t /*until_ns*/,
           const std::vector<reader::LiveThread>& threads) override {
    open.clear();
    for (const reader::LiveThread& thread : threads) {
      for (const reader::OpenFrame& frame : thread.stack.frames) {
        open.push_back({frame.key, frame.start_ns});
      }
    }
  }

  uint64_t frame_opened(const reader::FrameInfo& /*frame*/) override { return 0; }
  void frame_closed(const reader::FrameInfo& frame, uint64_t /*token*/,
                    bool /*shown*/) override {
    if ((frame.flags & reader::kFrameOpen) == 0) {
      left.push_back(replay_->functions()[frame.function].name);
    }
  }
  void frame_adopted(const reader::FrameInfo& /*frame*/) override {}
  void point(const reader::PointInfo& /*point*/) override {}

  std::vector<std::string> left;
  std::vector<std::pair<uint64_t, int64_t>> open;  // key and start

 private:
  reader::Replay* replay_ = nullptr;
};

TEST_CASE("a frame that an earlier tick saw entered is left by its name") {
  BufferBuilder buffer;
  buffer.slots[0].lock = 100;
  buffer.slots[0].writer = 1;
  buffer.block(0,
               BlockBuilder::shared(0, 0, ARCTRACE_CLASS_DEFINITIONS)
                   .add_full(ARCTRACE_TYPE_PROCESS, 1, 0, process_body({}))
                   .add_full(ARCTRACE_TYPE_THREAD, 1, 0, thread_body(1, 1, 100, "one")),
               ARCTRACE_PHASE_SHARED);
  const auto bytes = std::make_shared<std::vector<std::byte>>();
  const auto block = [] {
    return BlockBuilder::exclusive(1, 0, 1, 10)
        .stack(10, {})
        .enter(20, kOuter)
        .enter(30, kInner);
  };
  buffer.block(1, block(), ARCTRACE_PHASE_OWNED);
  *bytes = buffer.image();
  absl::StatusOr<reader::SessionCopy> copy =
      reader::SessionCopy::create(std::make_unique<ChangingInput>(bytes));
  REQUIRE(copy.ok());
  reader::Symbolizer symbolizer;
  reader::LiveReader reader(*std::move(copy), symbolizer, true);
  NotedTick tick;
  using Open = std::vector<std::pair<uint64_t, int64_t>>;
  const int64_t offset = 20 - static_cast<int64_t>(buffer.header.start_ticks);

  REQUIRE(reader.tick(tick).ok());
  CHECK(tick.left.empty());
  CHECK(tick.open == Open{{kOuter, offset}, {kInner, offset + 10}});
  // Nothing happens, so the threads' frames and their start times do not change.
  REQUIRE(reader.tick(tick).ok());
  CHECK(tick.open == Open{{kOuter, offset}, {kInner, offset + 10}});

  BlockBuilder grown = block();
  grown.exit(40).exit(50);
  buffer.block(1, grown, ARCTRACE_PHASE_OWNED);
  *bytes = buffer.image();
  REQUIRE(reader.tick(tick).ok());
  CHECK(tick.left == std::vector<std::string>{"0x2000", "0x1000"});
  CHECK(tick.open.empty());
}

TEST_CASE("what a fork child entered itself stays open from tick to tick") {
  BufferBuilder buffer;
  buffer.slots[0].lock = 101;
  buffer.slots[0].writer = 2;
  ProcessFacts child;
  child.process = 2;
  child.pid = 101;
  child.origin = ARCTRACE_ORIGIN_FORK;
  buffer.block(0,
               BlockBuilder::shared(0, 0, ARCTRACE_CLASS_DEFINITIONS)
                   .add_full(ARCTRACE_TYPE_PROCESS, 2, 0, process_body(child))
                   .add_full(ARCTRACE_TYPE_THREAD, 2, 0, thread_body(2, 2, 101, "one")),
               ARCTRACE_PHASE_SHARED);
  buffer.block(
      1,
      BlockBuilder::exclusive(2, 0, 1, 10, 2, 101, 101).stack(10, {}).enter(20, kOuter),
      ARCTRACE_PHASE_OWNED);
  const auto bytes = std::make_shared<std::vector<std::byte>>(buffer.image());
  absl::StatusOr<reader::SessionCopy> copy =
      reader::SessionCopy::create(std::make_unique<ChangingInput>(bytes));
  REQUIRE(copy.ok());
  reader::Symbolizer symbolizer;
  reader::LiveReader reader(*std::move(copy), symbolizer, true);
  NotedTick tick;
  for (int i = 0; i < 5; ++i) {
    REQUIRE(reader.tick(tick).ok());
    REQUIRE(tick.open.size() == 1);
    CHECK(tick.open[0].first == kOuter);
  }
}

TEST_CASE("a stack as a record says it: the innermost frames that are known") {
  reader::OpenStack stack;
  stack.frames.resize(4);
  stack.frames[0].is_inherited = true;
  stack.frames[1].count = 3;
  stack.frames[2].key = kOuter;
  stack.frames[3].is_kernels = true;
  CHECK(stack.record_body() == stack_body({kOuter}, 4).data());
  stack.coroutine = 7;
  CHECK(stack.record_body() == stack_body({kOuter}, 4).u32(7).data());
}

TEST_CASE("a stack's frames of the kernel, as the kernel's records say them") {
  reader::OpenStack stack;
  stack.frames.resize(3);
  stack.frames[0].key = kOuter;
  stack.frames[1].is_kernels = stack.frames[2].is_kernels = true;
  stack.frames[1].kernel_type = ARCTRACE_TYPE_SYSCALL;
  stack.frames[1].kernel_value = 35;
  stack.frames[2].kernel_type = ARCTRACE_TYPE_CONTENTION;
  stack.frames[2].kernel_value = 0x7700;
  const auto records = stack.kernel_records();
  REQUIRE(records.size() == 2);
  CHECK(records[0].first == ARCTRACE_TYPE_SYSCALL);
  CHECK(records[0].second == Bytes().u32(0).u32(0).u32(35).u32(0).data());
  CHECK(records[1].first == ARCTRACE_TYPE_CONTENTION);
  CHECK(records[1].second == Bytes().u32(0).u32(0).u64(0x7700).u32(0).u32(0).data());
}

}  // namespace
}  // namespace arctrace::testing
