// Raw images of a buffer, live or abandoned.
#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "reader/trace/trace.hpp"
#include "src/base/untrusted_bytes.hpp"
#include "tests/support/trace_builder.hpp"
#include "tests/unit/trace/collected.hpp"

namespace arctrace::testing {
namespace {

using reader::Trace;
using Rules = std::vector<std::string>;

constexpr uint32_t kDied = 0x40000000;  // FUTEX_OWNER_DIED

arctrace_writer_slot slot(uint32_t lock, uint32_t writer) {
  arctrace_writer_slot slot{};
  slot.lock = lock;
  slot.writer = writer;
  slot.process = 1;
  slot.pid = 100;
  slot.tid = 100 + writer;
  return slot;
}

BlockBuilder definitions(uint64_t handout) {
  return BlockBuilder::shared(handout, 0, ARCTRACE_CLASS_DEFINITIONS)
      .add_full(ARCTRACE_TYPE_PROCESS, 1, 0, process_body({}))
      .add_full(ARCTRACE_TYPE_THREAD, 1, 0, thread_body(1, 1, 101, "one"))
      .add_full(ARCTRACE_TYPE_THREAD, 2, 0, thread_body(2, 1, 102, "two"));
}

TEST_CASE("blocks that are handed out during the listing are left to the next one") {
  for (const uint32_t lock : {uint32_t{101}, kDied}) {
    BufferBuilder buffer;
    buffer.slots[0] = slot(lock, 1);
    buffer.block(0, definitions(0), ARCTRACE_PHASE_SHARED);
    buffer.block(1, BlockBuilder::exclusive(1, 0, 1, 100).stack(100, {}).enter(101, 1),
                 ARCTRACE_PHASE_CLOSED);
    buffer.block(2, BlockBuilder::exclusive(1, 1, 2, 110).stack(110, {1}).exit(112),
                 ARCTRACE_PHASE_OWNED);
    buffer.control.next = 2;
    Trace trace = open_bytes(buffer.image());
    const auto all = collect(trace);
    CHECK(of_type(all, ARCTRACE_TYPE_ENTER).size() == 1);
    // Where no writer is alive the counter tells nothing.
    CHECK(of_type(all, ARCTRACE_TYPE_EXIT).size() == (lock == kDied ? 1 : 0));
  }
}

TEST_CASE("blocks in use are read, whatever their phase") {
  BufferBuilder buffer;
  buffer.slots[0] = slot(101, 1);
  buffer.slots[1] = slot(kDied, 2);
  buffer.block(0, definitions(0), ARCTRACE_PHASE_SHARED);
  buffer.block(1, BlockBuilder::exclusive(1, 3, 9, 100).stack(100, {}).enter(101, 1),
               ARCTRACE_PHASE_CLOSED);
  buffer.block(2, BlockBuilder::exclusive(1, 4, 10, 110).stack(110, {1}).exit(112),
               ARCTRACE_PHASE_OWNED);
  buffer.block(3, BlockBuilder::exclusive(2, 0, 11, 105).stack(105, {}).enter(106, 2),
               ARCTRACE_PHASE_DRAINING);
  buffer.block(4, BlockBuilder::exclusive(2, 1, 12, 105).stack(105, {}).enter(107, 3),
               ARCTRACE_PHASE_RESETTING);
  BlockBuilder not_open = BlockBuilder::exclusive(2, 1, 13, 105);
  not_open.header.magic = ARCTRACE_FILL;
  buffer.block(5, not_open, ARCTRACE_PHASE_OWNED);
  Trace trace = open_bytes(buffer.image());
  const auto all = collect(trace);
  CHECK(trace.session().raw);
  std::vector<uint64_t> entered;
  for (const auto& enter : of_type(all, ARCTRACE_TYPE_ENTER)) {
    entered.push_back(first_u64(enter));
  }
  CHECK(entered == std::vector<uint64_t>{1, 2});
  CHECK(of_type(all, ARCTRACE_TYPE_EXIT).size() == 1);
  CHECK(of_type(all, ARCTRACE_TYPE_STACK)[0].record.after_gap);  // blocks 0-2 drained
  CHECK(rules_of(trace) == Rules{});

  const reader::BufferState* state = trace.buffer();
  REQUIRE(state != nullptr);
  CHECK(state->blocks_by_phase[ARCTRACE_PHASE_FREE] == 2);
  CHECK(state->blocks_by_phase[ARCTRACE_PHASE_OWNED] == 2);
  CHECK(state->blocks_by_phase[ARCTRACE_PHASE_SHARED] == 1);
  CHECK(state->blocks_by_phase[ARCTRACE_PHASE_CLOSED] == 1);
  REQUIRE(state->slots.size() == 2);
  CHECK(state->slots[0].alive);
  CHECK_FALSE(state->slots[1].alive);
  CHECK(state->slots[1].tid == 102);
}

TEST_CASE("an unknown phase, a wrong index") {
  BufferBuilder buffer;
  buffer.block(0, definitions(0), 9);
  buffer.block(1, BlockBuilder::exclusive(1, 0, 2, 0).stack(0, {}),
               ARCTRACE_PHASE_CLOSED);
  Trace trace = open_bytes(buffer.image());
  collect(trace);
  CHECK(trace.buffer()->blocks_by_phase[0] == 1);
  CHECK(rules_of(trace) == Rules{"B1", "B3", "R7", "D1"});
}

TEST_CASE("a live writer's record in progress is unfinished, a dead one's torn") {
  BufferBuilder buffer;
  buffer.slots[0] = slot(101, 1);
  buffer.slots[1] = slot(kDied | 102, 2);
  buffer.block(0, definitions(0), ARCTRACE_PHASE_SHARED);
  buffer.block(
      1,
      BlockBuilder::exclusive(1, 0, 1, 0).add(ARCTRACE_TYPE_ENTER, 0, key_body(1), true),
      ARCTRACE_PHASE_OWNED);
  buffer.block(
      2,
      BlockBuilder::exclusive(2, 0, 2, 0).add(ARCTRACE_TYPE_ENTER, 0, key_body(1), true),
      ARCTRACE_PHASE_OWNED);
  buffer.block(3,
               BlockBuilder::shared(3, 0)
                   .add_full(ARCTRACE_TYPE_EXIT, 1, 0, {}, true)
                   .add_full(ARCTRACE_TYPE_EXIT, 2, 0, {}, true)
                   .add_full(ARCTRACE_TYPE_EXIT, 2, 0, {}, true),
               ARCTRACE_PHASE_CLOSED);
  Trace trace = open_bytes(buffer.image());
  collect(trace);
  CHECK(trace.summary().unfinished == 2);
  CHECK(trace.summary().torn == 3);
  CHECK(rules_of(trace) == Rules{});
}

TEST_CASE("losses that only the slots know come last, as the collector's would") {
  BufferBuilder buffer;
  buffer.slots[0] = slot(101, 1);
  buffer.slots[0].lost[ARCTRACE_LOST_FULL] = 10;
  buffer.slots[0].reported[ARCTRACE_LOST_FULL] = 4;
  buffer.slots[0].lost[ARCTRACE_LOST_TOO_BIG] = 1;
  buffer.control.lost[ARCTRACE_LOST_NO_SLOT] = 100;
  buffer.block(0, definitions(0), ARCTRACE_PHASE_SHARED);
  buffer.block(1,
               BlockBuilder::exclusive(1, 0, 1, 50)
                   .add(ARCTRACE_TYPE_LOST, 50, lost_body(ARCTRACE_LOST_FULL, 4, 40))
                   .stack(50, {})
                   .enter(60, 1),
               ARCTRACE_PHASE_OWNED);
  Trace trace = open_bytes(buffer.image());
  const auto all = collect(trace);
  const auto lost = of_type(all, ARCTRACE_TYPE_LOST);
  REQUIRE(lost.size() == 4);
  CHECK(uint64_t{load_part_untrusted<arctrace_lost_body>(lost[1].body).count} == 6);
  CHECK(lost[1].writer == 1);
  CHECK(lost[1].record.time_ns == 60);
  CHECK(lost[3].record.thread == reader::kNoIndex);
  CHECK(uint32_t{load_part_untrusted<arctrace_lost_body>(lost[3].body).flags} ==
        (ARCTRACE_LOST_RESIDUAL | ARCTRACE_LOST_SESSION));
  CHECK(trace.summary().lost == 111);
  CHECK(trace.summary().lost_by_cause[ARCTRACE_LOST_FULL] == 10);
  CHECK(trace.summary().lost_by_cause[ARCTRACE_LOST_NO_SLOT] == 100);
  CHECK(all.back().record.type == ARCTRACE_TYPE_LOST);
}

TEST_CASE("a slot that reported more than it lost") {
  BufferBuilder buffer;
  buffer.slots[0] = slot(101, 1);
  buffer.slots[0].reported[0] = 1;
  Trace trace = open_bytes(buffer.image());
  collect(trace);
  CHECK(rules_of(trace) == Rules{"L1"});
  CHECK(trace.summary().lost == 0);
}

TEST_CASE("what is copied while its owner writes ends at its first hole") {
  BufferBuilder buffer;
  buffer.slots[0] = slot(101, 1);
  buffer.block(0, definitions(0), ARCTRACE_PHASE_SHARED);
  BlockBuilder block = BlockBuilder::exclusive(1, 0, 1, 0).stack(0, {}).enter(1, 1);
  block.hole(2).content.u32(0x12345678);  // of a record begun behind the copy's position
  buffer.block(1, block, ARCTRACE_PHASE_OWNED);
  BlockBuilder shared = BlockBuilder::shared(2, 0);
  shared.add_full(ARCTRACE_TYPE_ENTER, 1, 2, key_body(2));
  shared.hole(2).content.u32(0x12345678);
  buffer.block(2, shared, ARCTRACE_PHASE_SHARED);
  Trace trace = open_bytes(buffer.image());
  CHECK(of_type(collect(trace), ARCTRACE_TYPE_ENTER).size() == 2);
  CHECK(rules_of(trace) == Rules{});
  // With a dead owner this is damage.
  buffer.slots[0].lock = kDied;
  Trace dead = open_bytes(buffer.image());
  collect(dead);
  CHECK(rules_of(dead) == Rules{"R1", "R1"});
}

// An input whose bytes change after the trace was opened.
class ChangingInput : public reader::Input {
 public:
  explicit ChangingInput(std::vector<std::byte>* bytes)
      : bytes_(bytes), size_(bytes->size()) {}
  const std::string& name() const override { return name_; }
  uint64_t size() const override { return size_; }
  absl::StatusOr<size_t> read(uint64_t offset, std::span<std::byte> into) override {
    if (offset >= bytes_->size()) return size_t{0};
    const size_t count = std::min<size_t>(into.size(), bytes_->size() - offset);
    std::copy_n(bytes_->begin() + static_cast<ptrdiff_t>(offset), count, into.begin());
    return count;
  }

 private:
  std::string name_ = "changing";
  std::vector<std::byte>* bytes_;
  uint64_t size_;
};

TEST_CASE("blocks that are recycled between indexing and reading are skipped") {
  BufferBuilder buffer;
  buffer.slots[0] = slot(101, 1);
  buffer.block(0, definitions(0), ARCTRACE_PHASE_SHARED);
  buffer.block(1, BlockBuilder::exclusive(1, 0, 1, 0).stack(0, {}).enter(1, 1),
               ARCTRACE_PHASE_CLOSED);
  buffer.block(2, BlockBuilder::exclusive(1, 1, 2, 0).stack(0, {1}).enter(2, 2),
               ARCTRACE_PHASE_CLOSED);
  std::vector<std::byte> bytes = buffer.image();
  auto trace = Trace::open(std::make_unique<ChangingInput>(&bytes));
  REQUIRE(trace.ok());
  buffer.block(1, BlockBuilder::exclusive(2, 0, 9, 0).stack(0, {}).enter(3, 3),
               ARCTRACE_PHASE_OWNED);
  bytes = buffer.image();
  const auto all = collect(*trace);
  const auto entered = of_type(all, ARCTRACE_TYPE_ENTER);
  REQUIRE(entered.size() == 1);
  CHECK(first_u64(entered[0]) == 2);
  CHECK(of_type(all, ARCTRACE_TYPE_STACK)[0].record.after_gap);
  CHECK(rules_of(*trace) == Rules{});
}

TEST_CASE("a file that shrinks while it is read leads to findings") {
  FileBuilder file;
  file.program({}, 1, "main", 0);
  file.block(BlockBuilder::exclusive(1, 0, 1, 100).stack(100, {}).enter(101, 1), 0, 1);
  file.finish(200);
  const std::vector<std::byte> whole = file.file();
  for (size_t size = 0; size <= whole.size(); ++size) {
    std::vector<std::byte> bytes = whole;
    auto trace = Trace::open(std::make_unique<ChangingInput>(&bytes));
    REQUIRE(trace.ok());
    bytes.resize(size);
    collect(*trace);
    CHECK((trace->finding_count() == 0) == (size == whole.size()));
  }
}

TEST_CASE("a buffer's image that is cut: what is there is read") {
  BufferBuilder buffer;
  buffer.slots[0] = slot(kDied, 1);
  buffer.block(0, definitions(0), ARCTRACE_PHASE_CLOSED);
  buffer.block(1, BlockBuilder::exclusive(1, 0, 1, 0).stack(0, {}).enter(1, 1),
               ARCTRACE_PHASE_CLOSED);
  std::vector<std::byte> image = buffer.image();
  image.resize(buffer.header.blocks_offset + 4096 + 128 + 16 + 10);
  Trace trace = open_bytes(image);
  const auto all = collect(trace);
  CHECK(of_type(all, ARCTRACE_TYPE_STACK).size() == 1);
  CHECK(of_type(all, ARCTRACE_TYPE_ENTER).empty());
  CHECK(rules_of(trace) == Rules{"F8"});
}

}  // namespace
}  // namespace arctrace::testing
