// On and off the CPU in a live session: facts that the kernel's records of one tick tell
// remain known in the next ones.
#include <doctest/doctest.h>

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "reader/live/live_model.hpp"
#include "tests/support/trace_builder.hpp"
#include "tests/unit/live/changing_input.hpp"

namespace arctrace::testing {
namespace {

using reader::LiveModel;
using reader::LiveRow;
using reader::LiveSort;
using reader::LiveTable;

constexpr uint64_t kKey = 0x1000;
constexpr uint32_t kSpace = 4026532000;  // a PID namespace

Bytes switch_body(uint32_t state, uint32_t next) {
  return Bytes().u32(0).u32(100).u32(state).u32(next).u32(100);
}

// A session with one thread, 100, whose records and kernel's records change.
class Session {
 public:
  // `space`: the PID namespace of the program; 0: the first.
  explicit Session(uint32_t space = 0) {
    buffer.control.collector_lock = 7;  // the session has a living collector
    buffer.slots[0].lock = 100;
    buffer.slots[0].writer = 1;
    BlockBuilder definitions = BlockBuilder::shared(0, 0, ARCTRACE_CLASS_DEFINITIONS);
    definitions.add_full(ARCTRACE_TYPE_PROCESS, 1, 0, process_body({}))
        .add_full(ARCTRACE_TYPE_THREAD, 1, 0, thread_body(1, 1, 100, "one"));
    if (space != 0) {
      definitions.add_full(ARCTRACE_TYPE_PID_NAMESPACE, 1, 0, pair_body(1, space));
    }
    buffer.block(0, definitions, ARCTRACE_PHASE_SHARED);
    BlockBuilder calls = BlockBuilder::exclusive(1, 0, 1, 10);
    buffer.block(1, calls.stack(10, {}).enter(20, kKey), ARCTRACE_PHASE_OWNED);
  }

  void add_kernel(BlockBuilder block, uint32_t index = 2) {
    block.header.writer = ARCTRACE_WRITER_KERNEL;
    buffer.block(index, block, ARCTRACE_PHASE_CLOSED);
  }
  void remove_kernel() { buffer.blocks.at(2) = {}; }

  reader::LiveReader open(reader::Symbolizer& symbolizer) {
    *bytes_ = buffer.image();
    absl::StatusOr<reader::SessionCopy> copy =
        reader::SessionCopy::create(std::make_unique<ChangingInput>(bytes_));
    REQUIRE(copy.ok());
    return {*std::move(copy), symbolizer, true};
  }
  void tick(reader::LiveReader& reader, LiveModel& model) {
    *bytes_ = buffer.image();
    REQUIRE(reader.tick(model).ok());
    REQUIRE(model.threads().size() == 1);
  }

  BufferBuilder buffer;

 private:
  std::shared_ptr<std::vector<std::byte>> bytes_ =
      std::make_shared<std::vector<std::byte>>();
};

LiveRow row_of(const LiveModel& model) {
  const std::vector<LiveRow> rows =
      model.rows(LiveTable::kFunctions, LiveSort::kCpu, "0x1000");
  REQUIRE(rows.size() == 1);
  return rows[0];
}

TEST_CASE("a thread stays blocked until a record says otherwise, however long that is") {
  Session session;
  session.add_kernel(BlockBuilder::shared(2, 0).add_full(
      ARCTRACE_TYPE_SWITCH, ARCTRACE_WRITER_KERNEL | 100, 1020, switch_body(1, 0)));
  reader::Symbolizer symbolizer;
  reader::LiveReader reader = session.open(symbolizer);
  LiveModel model(INT64_MAX);
  session.tick(reader, model);
  CHECK(model.has_cpu());
  const reader::LiveCpu first = model.threads()[0].cpu;
  CHECK(first.source == reader::CpuSource::kKernel);
  CHECK(first.state == "blocked: sleeps");
  CHECK_FALSE(first.is_on_cpu);
  CHECK(first.cpu_ns == 1010);  // since the thread began
  CHECK(first.wall_ns > first.cpu_ns);
  CHECK(first.wall_ns - first.cpu_ns == static_cast<uint64_t>(first.for_ns));
  CHECK(row_of(model).sums.cpu_ns == 1000);

  // The record is not there any more, and the call of the block is no longer known.
  session.remove_kernel();
  for (int i = 0; i < 60; ++i) session.tick(reader, model);
  const reader::LiveCpu& later = model.threads()[0].cpu;
  CHECK(later.state == "blocked: sleeps");
  CHECK(later.for_ns > first.for_ns);
  CHECK(later.cpu_ns == 0);  // in the ticks of the window
  CHECK(later.wall_ns > 0);
  CHECK(later.history.back() == 0);
  CHECK(row_of(model).sums.cpu_ns == 0);
  CHECK(row_of(model).sums.self_ns == later.wall_ns);

  session.add_kernel(BlockBuilder::shared(3, 0).add_full(
      ARCTRACE_TYPE_SWITCH, ARCTRACE_WRITER_KERNEL | 0, 2020, switch_body(0, 100)));
  session.tick(reader, model);
  CHECK(model.threads()[0].cpu.state == "running");
  CHECK(model.threads()[0].cpu.is_on_cpu);
  CHECK(model.threads()[0].cpu.history.back() == 1000);
  model.set_buffer(reader.copy().buffer(), 8);
  CHECK(model.counters().on_cpu == 1);
}

BlockBuilder switch_out(uint64_t handout, uint64_t time) {
  return BlockBuilder::shared(handout, 0)
      .add_full(ARCTRACE_TYPE_SWITCH, ARCTRACE_WRITER_KERNEL | 100, time,
                switch_body(1, 0));
}

// An observed session, whose thread has left its CPU to sleep.
struct Watched {
  Session session;
  reader::Symbolizer symbolizer;
  std::optional<reader::LiveReader> reader;
  LiveModel model{INT64_MAX};

  Watched() {
    session.add_kernel(switch_out(2, 1020));
    reader.emplace(session.open(symbolizer));
  }
  std::string state_after_tick() {
    session.tick(*reader, model);
    return model.threads()[0].cpu.state;
  }
};

// The kernel's block is there in each tick, and has no later record.
TEST_CASE("that there is no later record yet makes no state unknown") {
  Watched watched;
  for (int i = 0; i < 3; ++i) CHECK(watched.state_after_tick() == "blocked: sleeps");
}

TEST_CASE("when the kernel's recorder has ended nothing is known of states") {
  Watched watched;
  CHECK(watched.state_after_tick() == "blocked: sleeps");
  watched.session.buffer.control.collector_lock = 0;
  CHECK(watched.state_after_tick() == "not known");
}

// Hand-out 3 was overwritten before it was read, perhaps with a wake-up in it.
TEST_CASE("a block that was missed makes states unknown up to the next record") {
  Watched watched;
  CHECK(watched.state_after_tick() == "blocked: sleeps");
  // A tick shows the time up to 20 ms ago.
  std::this_thread::sleep_for(std::chrono::milliseconds(25));
  watched.session.add_kernel(BlockBuilder::shared(4, 0).add_full(
                                 ARCTRACE_TYPE_SWITCH, ARCTRACE_WRITER_KERNEL | 7, 2020,
                                 Bytes().u32(1).u32(7).u32(1).u32(0).u32(7)),
                             3);
  // A block may appear in the buffer a moment later than one that was handed out after
  // it.
  CHECK(watched.state_after_tick() == "blocked: sleeps");
  CHECK(watched.state_after_tick() == "not known");
  CHECK(watched.state_after_tick() == "not known");
  watched.session.add_kernel(switch_out(5, 3020));
  CHECK(watched.state_after_tick() == "blocked: sleeps");
}

TEST_CASE("a thread's number in another PID namespace is known in later ticks") {
  Session session(kSpace);
  const uint32_t parent = ARCTRACE_WRITER_KERNEL | 7;
  session.add_kernel(
      BlockBuilder::shared(2, 0)
          .add_full(ARCTRACE_TYPE_FORKED, parent, 5,
                    Bytes().u32(0).u32(7).u32(5100).u32(5100))
          .add_full(ARCTRACE_TYPE_NUMBERED, parent, 5,
                    Bytes().u32(0).u32(7).u32(5100).u32(100).u32(kSpace).u32(0)));
  reader::Symbolizer symbolizer;
  reader::LiveReader reader = session.open(symbolizer);
  LiveModel model(INT64_MAX);
  session.tick(reader, model);
  CHECK(model.threads()[0].pid_namespace == kSpace);
  CHECK(model.threads()[0].cpu.state == "running");
  session.remove_kernel();
  for (int i = 0; i < 60; ++i) session.tick(reader, model);
  session.add_kernel(BlockBuilder::shared(3, 0).add_full(
      ARCTRACE_TYPE_SWITCH, ARCTRACE_WRITER_KERNEL | 5100, 1020, switch_body(2, 0)));
  session.tick(reader, model);
  CHECK(model.threads()[0].cpu.state == "blocked: sleeps uninterruptibly");
}

TEST_CASE("without the kernel's records nothing is said of CPUs") {
  Session session;
  reader::Symbolizer symbolizer;
  reader::LiveReader reader = session.open(symbolizer);
  LiveModel model(INT64_MAX);
  session.tick(reader, model);
  CHECK_FALSE(model.has_cpu());
  CHECK(model.threads()[0].cpu.source == reader::CpuSource::kNone);
  CHECK(model.threads()[0].pid == 100);
  CHECK(model.threads()[0].pid_namespace == 0);
  CHECK(row_of(model).sums.cpu_ns == 0);
  // State from another source is shown until the next tick.
  reader::LiveCpu known;
  known.source = reader::CpuSource::kProc;
  model.set_cpu(0, known);
  CHECK(model.threads()[0].cpu.source == reader::CpuSource::kProc);
}

}  // namespace
}  // namespace arctrace::testing
