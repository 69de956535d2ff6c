// A CPU's chain of shared blocks, written by the kernel or from perf's events.
#include "src/protocol/cpu_chain.hpp"

#include <doctest/doctest.h>

#include "src/base/untrusted_bytes.hpp"
#include "src/buffer/clock.hpp"
#include "src/protocol/block_state.hpp"
#include "src/protocol/handout.hpp"
#include "src/recorder/buffer/recording_control.hpp"
#include "src/recorder/drain/cpu_blocks.hpp"
#include "src/recorder/drain/recorder.hpp"
#include "tests/support/test_session.hpp"

namespace arctrace::testing {
using CpuAtomics = IpcAtomics;
}  // namespace arctrace::testing

#include "tests/support/cpu_writer.hpp"

namespace arctrace::testing {
namespace {

using OneCpuChain = CpuChain<IpcAtomics>;

recorder::BufferOptions cpu_buffer(uint32_t blocks) {
  recorder::BufferOptions options = small_buffer(1024, blocks);
  options.cpu_count = 2;
  return options;
}

// Acts as a program of the CPU that writes one record; false: it is lost.
bool write_one(const BufferView& view, uint32_t cpu) {
  using namespace cpu_writer;  // NOLINT: what bpf/append.h has
  use(view);
  running = cpu;
  kernel_writer writer{};
  REQUIRE(begin_writer(&writer));
  auto* body = static_cast<arctrace_switch_body*>(
      begin_record(&writer, ARCTRACE_TYPE_SWITCH, sizeof(arctrace_switch_body), {77, 1}));
  if (body == nullptr) return false;
  body->prev_state = body->next_tid = body->next_tgid = 1;
  end_record(&writer);
  return true;
}

// Acts as a program that writes the record of an interrupt that began at `since`; false:
// it is lost.
bool write_interrupt(const BufferView& view, uint32_t cpu, uint64_t since) {
  using namespace cpu_writer;  // NOLINT: what bpf/append.h has
  use(view);
  running = cpu;
  kernel_writer writer{};
  REQUIRE(begin_writer(&writer));
  writer.ticks = since;
  auto* body = static_cast<arctrace_interrupt_body*>(begin_record(
      &writer, ARCTRACE_TYPE_INTERRUPT, sizeof(arctrace_interrupt_body), {77, 1}));
  if (body == nullptr) return false;
  body->kind = ARCTRACE_INTERRUPT_CPU;
  body->number = ARCTRACE_CPU_TIMER;
  body->duration_ns = 5;
  body->name_size = 0;
  end_record(&writer);
  return true;
}

// Appends as the collector does in place of the programs; false: there is no space.
bool append_for(const BufferView& view, uint32_t cpu) {
  constexpr uint32_t kLength = 36;
  const SharedReservation got = OneCpuChain::reserve(view, cpu, kLength, 1000);
  if (got.record == nullptr) {
    CHECK(view.cpu_slot(cpu).active[0] == 0);
    return false;
  }
  CHECK(view.cpu_slot(cpu).active[0] == got.index + 1);
  word_at(got.record + 4) = ARCTRACE_WRITER_KERNEL | 77;
  for (uint32_t at = 8; at < kLength; at += 4) word_at(got.record + at) = 1;
  word_at(got.record) = ARCTRACE_WORD0(ARCTRACE_TYPE_SWITCH, kLength);
  OneCpuChain::release(view, cpu);
  CHECK(view.cpu_slot(cpu).active[0] == 0);
  return true;
}

TEST_CASE("cpu chain: a CPU opens a free block, and the next one when that is full") {
  TestSession session(cpu_buffer(32));
  const BufferView& view = session.view();
  const arctrace_cpu_slot& slot = view.cpu_slot(1);
  REQUIRE(write_one(view, 1));
  REQUIRE(write_one(view, 1));
  CHECK(session.blocks_in(ARCTRACE_PHASE_SHARED) == 1);
  const uint64_t first = slot.current;
  CHECK(OneCpuChain::is_named(view, first));
  const arctrace_block_header& header = view.block_header(BlockName::index(first));
  CHECK(header.next == ARCTRACE_BLOCK_HEADER_SIZE + 72);
  CHECK(header.writer == ARCTRACE_WRITER_KERNEL);
  CHECK(header.magic == ARCTRACE_BLOCK_MAGIC);
  CHECK(header.form == ARCTRACE_FORM_FULL);
  CHECK(header.handout % 32 == BlockName::index(first));
  for (int i = 0; i < 23; ++i) REQUIRE(write_one(view, 1));
  CHECK(slot.current != first);
  CHECK(!OneCpuChain::is_named(view, first));
  CHECK(session.blocks_in(ARCTRACE_PHASE_SHARED) == 1);
  CHECK(session.blocks_in(ARCTRACE_PHASE_CLOSED) == 1);
  CHECK(view.control().taken == 2);
  OneCpuChain::close_all(view);
  CHECK(session.blocks_in(ARCTRACE_PHASE_SHARED) == 0);
  CHECK(slot.current == 0);
}

TEST_CASE("cpu chain: a CPU takes every block, then asks no more until a round") {
  constexpr uint32_t kBlocks = 60;  // too few to reserve some for definitions
  TestSession session(cpu_buffer(kBlocks));
  const BufferView& view = session.view();
  uint32_t written = 0;
  while (view.cpu_slot(0).lost < 10) written += write_one(view, 0) ? 1u : 0u;
  CHECK(written == kBlocks * ((1024 - ARCTRACE_BLOCK_HEADER_SIZE) / 36));
  CHECK(view.cpu_slot(0).searched == kBlocks);
  const uint64_t next = view.control().next;
  CHECK(!write_one(view, 0));
  CHECK(view.control().next == next);
  session.drain().round();
  CHECK(write_one(view, 0));
  CHECK(session.finish().of_type(ARCTRACE_TYPE_SWITCH).size() == written + 1);
}

TEST_CASE("cpu chain: an interrupt's record, and its loss, are of when it began") {
  TestSession session(cpu_buffer(32));
  const BufferView& view = session.view();
  const arctrace_cpu_slot& slot = view.cpu_slot(0);
  constexpr uint64_t kBegan = 12;
  uint32_t written = 0;
  while (write_interrupt(view, 0, kBegan)) ++written;
  CHECK(slot.lost == 1);
  CHECK(slot.lost_since == kBegan);
  REQUIRE(!write_one(view, 0));
  CHECK(slot.lost == 2);
  CHECK(slot.lost_since == kBegan);  // of the first one that no LOST record counts
  session.drain().round();
  const DecodedTrace trace = session.finish();
  const std::vector<DecodedRecord> records = trace.of_type(ARCTRACE_TYPE_INTERRUPT);
  REQUIRE(records.size() == written);
  for (const DecodedRecord& record : records) CHECK(record.ticks == kBegan);
}

TEST_CASE("cpu chain: the last sixteenth of the blocks is left for definitions") {
  constexpr uint32_t kBlocks = 200, kLeft = kBlocks / 16;
  for (const bool by_collector : {false, true}) {
    TestSession session(cpu_buffer(kBlocks));
    const BufferView& view = session.view();
    uint32_t written = 0;
    while (by_collector ? append_for(view, 0) : write_one(view, 0)) ++written;
    CHECK(session.blocks_in(ARCTRACE_PHASE_FREE) == kLeft);
    CHECK(written == (kBlocks - kLeft) * ((1024 - ARCTRACE_BLOCK_HEADER_SIZE) / 36));
    session.drain().round();
    CHECK((by_collector ? append_for(view, 0) : write_one(view, 0)));
  }
}

TEST_CASE("cpu chain: one free block among many is found, record by record") {
  constexpr uint32_t kBlocks = 200;
  recorder::BufferOptions options = cpu_buffer(kBlocks);
  options.mode = ARCTRACE_MODE_OVERWRITE;  // no blocks are reserved for definitions in it
  TestSession session(options);
  const BufferView& view = session.view();
  uint32_t name = 0;
  for (uint32_t i = 0; i < kBlocks; ++i) Handout<IpcAtomics>::take(view, 3, name);
  Handout<IpcAtomics>::give_back(
      view, {150, 150, BlockState{0, 3, ARCTRACE_PHASE_OWNED}.pack()});
  uint32_t tries = 1;
  for (; !write_one(view, 0); ++tries) REQUIRE(tries < 10);
  CHECK(tries == 3);
  CHECK(BlockName::index(view.cpu_slot(0).current) == 150);
}

TEST_CASE("cpu chain: in overwrite mode a CPU takes what the recorder made free") {
  recorder::BufferOptions options = cpu_buffer(8);
  options.mode = ARCTRACE_MODE_OVERWRITE;
  TestSession session(options);
  const BufferView& view = session.view();
  while (write_one(view, 0)) {
  }
  CHECK(session.blocks_in(ARCTRACE_PHASE_FREE) == 0);
  recorder::serve_cpus(view);
  CHECK(session.blocks_in(ARCTRACE_PHASE_FREE) == 4);  // half of the blocks
  const uint32_t oldest = static_cast<uint32_t>(view.control().next % 8);
  CHECK(BlockState::unpack(view.block_header(oldest).state).phase == ARCTRACE_PHASE_FREE);
  CHECK(write_one(view, 0));
  CHECK(BlockName::index(view.cpu_slot(0).current) == oldest);
  view.cpu_slot(1).active[2] = (oldest + 4) % 8 + 1;
  recorder::serve_cpus(view);
  CHECK(session.blocks_in(ARCTRACE_PHASE_FREE) == 4);
  CHECK(Recycle<IpcAtomics>::state(view, (oldest + 4) % 8).phase ==
        ARCTRACE_PHASE_CLOSED);
}

TEST_CASE("cpu chain: all records arrive, through more blocks than there are") {
  TestSession session(cpu_buffer(16));
  const BufferView& view = session.view();
  uint32_t written = 0;
  for (int round = 0; round < 40; ++round) {
    for (int i = 0; i < 30; ++i)
      written += write_one(view, 0) && write_one(view, 1) ? 2u : 0u;
    session.drain().round();
  }
  CHECK(written == 40 * 30 * 2);
  const DecodedTrace trace = session.finish();
  CHECK(joined(trace.problems) == "");
  CHECK(trace.of_type(ARCTRACE_TYPE_SWITCH).size() == written);
}

TEST_CASE(
    "cpu chain: a CPU that names a block keeps it, and its losses are reported once") {
  TestSession session(cpu_buffer(16));
  const BufferView& view = session.view();
  REQUIRE(write_one(view, 1));
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
  CHECK(recorder::cpu_losses(view) == 5);
  const DecodedTrace trace = session.finish();
  CHECK(trace.of_type(ARCTRACE_TYPE_SWITCH).size() == 1);
  CHECK(trace.lost() == 5);
  const auto losses = trace.of_type(ARCTRACE_TYPE_LOST);
  REQUIRE(losses.size() == 1);
  const auto lost = load_part_untrusted<arctrace_lost_body>(losses[0].body);
  const uint64_t since_ticks = lost.since_ticks;
  CHECK(uint32_t{lost.flags} == (ARCTRACE_LOST_SESSION | ARCTRACE_LOST_CPU | 1u << 16));
  CHECK(since_ticks < before);
  CHECK(since_ticks > 0);
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
  recorder::BufferOptions options = cpu_buffer(16);
  options.mode = ARCTRACE_MODE_OVERWRITE;
  TestSession session(options);
  const BufferView& view = session.view();
  for (uint32_t i = 0; i < 4000; ++i) {
    // CPU 1 writes so seldom that all its blocks belong to others by then.
    CHECK(append_for(view, i % 1000 == 999 ? 1 : 0));
  }
  const DecodedTrace trace = session.snapshot();
  CHECK(joined(trace.problems) == "");
  CHECK(trace.of_type(ARCTRACE_TYPE_SWITCH).size() >
        10 * ((1024 - ARCTRACE_BLOCK_HEADER_SIZE) / 36));
}

TEST_CASE("cpu chain: a dead collector's names of blocks are gone, a program's stay") {
  for (const bool is_perf : {false, true}) {
    recorder::BufferOptions options = cpu_buffer(4);
    if (is_perf) options.features = ARCTRACE_FEATURE_PERF;
    TestSession session(options);
    const SharedReservation got = OneCpuChain::reserve(session.view(), 1, 36, 1000);
    REQUIRE(got.record != nullptr);
    recorder::reclaim_blocks(session.buffer());
    CHECK(Recycle<IpcAtomics>::is_named(session.view(), got.index) == !is_perf);
  }
}

TEST_CASE("cpu chain: what is left half made is closed by the next collector") {
  TestSession session(cpu_buffer(4));
  const BufferView& view = session.view();
  uint32_t name = 0;
  REQUIRE(Handout<IpcAtomics>::take(view, ARCTRACE_KERNEL_SLOT, name));
  CHECK(session.blocks_in(ARCTRACE_PHASE_OWNED) == 1);
  recorder::reclaim_blocks(session.buffer());
  CHECK(session.blocks_in(ARCTRACE_PHASE_OWNED) == 0);
  CHECK(session.blocks_in(ARCTRACE_PHASE_CLOSED) == 1);
}

TEST_CASE("cpu chain: hostile names are no blocks") {
  TestSession session(cpu_buffer(4));
  const BufferView& view = session.view();
  view.cpu_slot(0).current = UINT64_MAX;
  view.cpu_slot(0).searched = UINT64_MAX;
  CHECK(!write_one(view, 0));
  view.cpu_slot(1).current = 0x80000000ull;
  view.cpu_slot(1).active[0] = UINT32_MAX;
  session.drain().round();
  CHECK(write_one(view, 0));
  OneCpuChain::close_all(view);
  CHECK(session.blocks_in(ARCTRACE_PHASE_SHARED) == 0);
}

}  // namespace
}  // namespace arctrace::testing
