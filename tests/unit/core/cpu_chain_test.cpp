#include "src/protocol/cpu_chain.hpp"

#include <doctest/doctest.h>

#include "reader/trace/bytes.hpp"
#include "src/clock.hpp"
#include "src/collector/collector_seat.hpp"
#include "src/collector/cpu_blocks.hpp"
#include "src/protocol/recycle.hpp"
#include "tests/support/test_session.hpp"

namespace arctrace::testing {
namespace {

using Chain = CpuChain<IpcAtomics>;

BufferOptions cpu_buffer(uint32_t blocks) {
  BufferOptions options = small_buffer(1024, blocks);
  options.cpu_count = 2;
  return options;
}

// What a BPF program does: a record in the CPU's current block; false: there is no room.
bool append(const BufferView& view, uint32_t cpu) {
  constexpr uint32_t kLength = 36;
  arctrace_cpu_slot& slot = view.cpu_slot(cpu);
  if (slot.current == 0) {
    for (uint64_t& spare : slot.spares) {
      if (slot.current == 0) std::swap(slot.current, spare);
    }
  }
  if (slot.current == 0) return false;
  arctrace_block_header& header = view.block_header(BlockName::index(slot.current));
  const uint64_t offset = header.next;
  header.next += kLength;
  if (offset + kLength > view.geometry().block_size) {
    close_shared<IpcAtomics>(view, BlockName::index(slot.current),
                             BlockName::generation(slot.current));
    slot.current = 0;
    return append(view, cpu);
  }
  std::byte* place = view.block(BlockName::index(slot.current)) + offset;
  word_at(place + 4) = ARCTRACE_WRITER_KERNEL | 77;
  for (uint32_t at = 8; at < kLength; at += 4) word_at(place + at) = 1;
  word_at(place) = ARCTRACE_WORD0(ARCTRACE_TYPE_SWITCH, kLength);
  return true;
}

TEST_CASE("cpu chain: open blocks are handed over, once, and replaced when closed") {
  TestSession session(cpu_buffer(32));
  const BufferView& view = session.view();
  Chain::hand_over(view, 1, 3, 1000);
  Chain::hand_over(view, 1, 3, 1000);
  CHECK(session.blocks_in(ARCTRACE_PHASE_SHARED) == 3);
  const arctrace_cpu_slot& slot = view.cpu_slot(1);
  CHECK(slot.spares[3] == 0);
  CHECK(view.cpu_slot(0).spares[0] == 0);
  for (uint32_t i = 0; i < 3; ++i) {
    const arctrace_block_header& header =
        view.block_header(BlockName::index(slot.spares[i]));
    CHECK(header.next == ARCTRACE_BLOCK_HEADER_SIZE);
    CHECK(header.writer == ARCTRACE_WRITER_KERNEL);
    CHECK(header.magic == ARCTRACE_BLOCK_MAGIC);
    CHECK(Chain::is_named(view, slot.spares[i]));
  }
  const uint64_t before = slot.spares[1];
  close_shared<IpcAtomics>(view, BlockName::index(before), BlockName::generation(before));
  Chain::hand_over(view, 1, 3, 1000);
  CHECK(slot.spares[1] != before);
  CHECK(!Chain::is_named(view, before));
  CHECK(session.blocks_in(ARCTRACE_PHASE_SHARED) == 3);
  Chain::close_all(view);
  CHECK(session.blocks_in(ARCTRACE_PHASE_SHARED) == 0);
  CHECK(slot.spares[0] == 0);
}

TEST_CASE("cpu chain: all records arrive, through more blocks than there are") {
  TestSession session(cpu_buffer(16));
  const BufferView& view = session.view();
  uint32_t written = 0;
  for (int round = 0; round < 40; ++round) {
    session.drain().round();
    for (int i = 0; i < 30; ++i) written += append(view, 0) && append(view, 1) ? 2u : 0u;
  }
  CHECK(written == 40 * 30 * 2);
  const DecodedTrace trace = session.finish();
  CHECK(joined(trace.problems) == "");
  CHECK(trace.of_type(ARCTRACE_TYPE_SWITCH).size() == written);
}

TEST_CASE("cpu chain: a CPU that names a block keeps it, and its losses are said once") {
  TestSession session(cpu_buffer(16));
  const BufferView& view = session.view();
  session.drain().round();
  REQUIRE(append(view, 1));
  arctrace_cpu_slot& slot = view.cpu_slot(1);
  const uint32_t index = BlockName::index(slot.current);
  slot.active[3] = index + 1;
  CHECK(Recycle<IpcAtomics>::is_named(view, index));
  close_shared<IpcAtomics>(view, index, BlockName::generation(slot.current));
  session.drain().round();
  CHECK(view.block_header(index).magic == ARCTRACE_BLOCK_MAGIC);
  slot.active[3] = 0;
  slot.lost = 5;
  slot.lost_since = read_monotonic_ns() - 1'000'000;
  const uint64_t before = read_ticks(view.geometry().clock);
  session.drain().round();
  session.drain().round();
  CHECK(view.block_header(index).magic == ARCTRACE_FILL);
  CHECK(slot.reported == 5);
  CHECK(cpu_losses(view) == 5);
  const DecodedTrace trace = session.finish();
  CHECK(trace.of_type(ARCTRACE_TYPE_SWITCH).size() == 1);
  CHECK(trace.lost() == 5);
  const auto losses = trace.of_type(ARCTRACE_TYPE_LOST);
  REQUIRE(losses.size() == 1);
  const std::byte* said = losses[0].body.data();
  CHECK(reader::load_u32(said + 4) ==
        (ARCTRACE_LOST_SESSION | ARCTRACE_LOST_CPU | 1u << 16));
  CHECK(reader::load_u64(said + 16) < before);
  CHECK(reader::load_u64(said + 16) > 0);
}

// What the collector does in place of the programs; false: there is no room.
bool append_for(const BufferView& view, uint32_t cpu) {
  constexpr uint32_t kLength = 36;
  const SharedReservation place = Chain::reserve(view, cpu, kLength, 1000);
  if (place.place == nullptr) {
    CHECK(view.cpu_slot(cpu).active[0] == 0);
    return false;
  }
  CHECK(view.cpu_slot(cpu).active[0] == place.index + 1);
  word_at(place.place + 4) = ARCTRACE_WRITER_KERNEL | 77;
  for (uint32_t at = 8; at < kLength; at += 4) word_at(place.place + at) = 1;
  word_at(place.place) = ARCTRACE_WORD0(ARCTRACE_TYPE_SWITCH, kLength);
  Chain::release(view, cpu);
  CHECK(view.cpu_slot(cpu).active[0] == 0);
  return true;
}

TEST_CASE("cpu chain: the collector writes for CPUs until no block is left") {
  TestSession session(cpu_buffer(16));
  const BufferView& view = session.view();
  uint32_t written = 0;
  while (append_for(view, 0)) ++written;
  CHECK(session.blocks_in(ARCTRACE_PHASE_FREE) == 0);
  CHECK(written == 16 * ((1024 - ARCTRACE_BLOCK_HEADER_SIZE) / 36));
  CHECK_FALSE(append_for(view, 1));
  session.drain().round();
  CHECK(append_for(view, 1));
  const DecodedTrace trace = session.finish();
  CHECK(joined(trace.problems) == "");
  CHECK(trace.of_type(ARCTRACE_TYPE_SWITCH).size() == written + 1);
}

TEST_CASE("cpu chain: the collector's blocks are overwritten as all are") {
  BufferOptions options = cpu_buffer(16);
  options.mode = ARCTRACE_MODE_OVERWRITE;
  TestSession session(options);
  const BufferView& view = session.view();
  for (uint32_t i = 0; i < 4000; ++i) {
    // CPU 1 comes so seldom that all its blocks are others' by then.
    CHECK(append_for(view, i % 1000 == 999 ? 1 : 0));
    if (i % 100 == 50) Chain::hand_over(view, 1, 2, 1000);
  }
  const DecodedTrace trace = session.snapshot();
  CHECK(joined(trace.problems) == "");
  CHECK(trace.of_type(ARCTRACE_TYPE_SWITCH).size() >
        10 * ((1024 - ARCTRACE_BLOCK_HEADER_SIZE) / 36));
}

TEST_CASE("cpu chain: a dead collector's names of blocks are gone, a program's stay") {
  for (const bool is_perf : {false, true}) {
    BufferOptions options = cpu_buffer(4);
    if (is_perf) options.features = ARCTRACE_FEATURE_PERF;
    TestSession session(options);
    const SharedReservation place = Chain::reserve(session.view(), 1, 36, 1000);
    REQUIRE(place.place != nullptr);
    reclaim_blocks(session.buffer());
    CHECK(Recycle<IpcAtomics>::is_named(session.view(), place.index) == !is_perf);
  }
}

TEST_CASE("cpu chain: what a dead collector was opening is closed by the next one") {
  TestSession session(cpu_buffer(4));
  const BufferView& view = session.view();
  uint32_t name = 0;
  REQUIRE(Handout<IpcAtomics>::take(view, kCollectorSlot, name));
  CHECK(session.blocks_in(ARCTRACE_PHASE_OWNED) == 1);
  reclaim_blocks(session.buffer());
  CHECK(session.blocks_in(ARCTRACE_PHASE_OWNED) == 0);
  CHECK(session.blocks_in(ARCTRACE_PHASE_CLOSED) == 1);
}

TEST_CASE("cpu chain: hostile names are no blocks") {
  TestSession session(cpu_buffer(4));
  const BufferView& view = session.view();
  for (uint64_t& spare : view.cpu_slot(0).spares) spare = UINT64_MAX;
  view.cpu_slot(1).current = 0x80000000ull;
  view.cpu_slot(1).active[0] = UINT32_MAX;
  session.drain().round();
  Chain::close_all(view);
  CHECK(session.blocks_in(ARCTRACE_PHASE_SHARED) == 0);
}

}  // namespace
}  // namespace arctrace::testing
