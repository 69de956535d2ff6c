// The collector's passes: which blocks reach the file, and which losses LOST records
// count.
#include "src/recorder/drain/drain.hpp"

#include <arctrace/arctrace.h>
#include <doctest/doctest.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <string>

#include "src/protocol/block_state.hpp"
#include "src/protocol/shared_chain.hpp"
#include "src/recorder/buffer/recording_control.hpp"
#include "src/recorder/file/file_ring.hpp"
#include "src/recorder/file/session_records.hpp"
#include "src/writer/record.hpp"
#include "tests/support/child.hpp"
#include "tests/support/test_session.hpp"

namespace arctrace::testing {
namespace {

// Starts a child that joins, runs `body` and is killed.
template <class Body>
void killed_child(const TestSession& test, Body&& body) {
  const int pid = start_child([&] {
    join(test);
    body();
    kill(getpid(), SIGKILL);
  });
  CHECK(wait_for_child(pid) == "signal 9");
}

TEST_CASE("drain: of a dead process everything is written and every block is free") {
  for (const arctrace_scope scope : {ARCTRACE_SCOPE_THREAD, ARCTRACE_SCOPE_SHARED}) {
    CAPTURE(scope);
    recorder::BufferOptions options = small_buffer(1024, 32);
    options.scope = scope;
    TestSession test(options);
    killed_child(test, [] {
      for (uint32_t i = 0; i < 10; ++i) arctrace_instant(i);
    });
    while (test.drain().round() > 0) {
    }
    // In the shared scope the open block stays open for the next writer.
    CHECK(test.blocks_in(ARCTRACE_PHASE_FREE) ==
          (scope == ARCTRACE_SCOPE_THREAD ? 32 : 31));
    CHECK(test.view().slot(0).lock == 0);
    const DecodedTrace trace = test.finish();
    CHECK(joined(trace.problems) == "");
    CHECK(trace.written() == 10);
    const std::vector<DecodedRecord> ends = trace.of_type(ARCTRACE_TYPE_WRITER_END);
    REQUIRE(ends.size() == 1);
    CHECK(ends[0].u32(0) == 1);
    CHECK(ends[0].u32(4) == ARCTRACE_WRITER_DIED);
  }
}

TEST_CASE("drain: what the file does not have counts as not reported") {
  TestSession test(small_buffer(1024, 32));
  killed_child(test, [] {
    const std::byte too_big[2000] = {};
    arctrace_write(1, too_big, sizeof too_big);
  });
  const arctrace_writer_slot& slot = test.view().slot(0);
  absl::StatusOr<recorder::TraceFile> full =
      recorder::TraceFile::create("/dev/full", recorder::SpecialFile::kWriteInto);
  REQUIRE(full.ok());
  recorder::Drain(test.view(), *full).round();
  CHECK(full->error() == ENOSPC);
  CHECK(slot.reported[ARCTRACE_LOST_TOO_BIG] == 0);
  CHECK(slot.lock == kOwnerDied);
  test.drain().round();
  CHECK(slot.reported[ARCTRACE_LOST_TOO_BIG] == 1);
  CHECK(slot.lock == 0);
  const DecodedTrace trace = test.finish();
  CHECK(trace.lost(1) == 1);
  CHECK(trace.of_type(ARCTRACE_TYPE_WRITER_END).size() == 1);
}

TEST_CASE("drain: a killed process' definitions are all there") {
  TestSession test(small_buffer(1024, 64));
  killed_child(test, [] {
    arctrace_instant(arctrace_define_name("a name"));
    arctrace_thread_name("a thread");
  });
  const DecodedTrace trace = test.finish();
  CHECK(joined(trace.problems) == "");
  CHECK(joined(undefined_uses(trace)) == "");
  CHECK(trace.of_type(ARCTRACE_TYPE_THREAD).size() == 2);
  CHECK(trace.of_type(ARCTRACE_TYPE_MODULE).size() > 3);
  CHECK(test.blocks_in(ARCTRACE_PHASE_SHARED) == 0);
}

TEST_CASE("drain: the open definitions of the living stay open") {
  TestSession test(small_buffer(4096, 16));
  CHECK_CHILD([&] {
    join(test);
    const uint32_t shared = test.blocks_in(ARCTRACE_PHASE_SHARED);
    CHECK(shared == 1);
    for (int i = 0; i < 5; ++i) test.drain().round();
    CHECK(test.blocks_in(ARCTRACE_PHASE_SHARED) == 1);
    arctrace_define_name("late");
    CHECK(test.blocks_in(ARCTRACE_PHASE_SHARED) == 1);
  });
}

TEST_CASE("drain: a shared block whose opener died before it named it is closed") {
  TestSession test(small_buffer(1024, 8));
  const BufferView& view = test.view();
  view.control().slot_next = 1;
  view.slot(0).lock = kOwnerDied;
  uint64_t chain_that_died = 0;
  const BlockIdentity identity{ARCTRACE_FORM_FULL, ARCTRACE_CLASS_DATA, 1, 1, 1, 1, 0, 0};
  const SharedReservation got =
      SharedChain<IpcAtomics>::reserve(view, 0, 0, chain_that_died, 32, identity);
  CHECK(test.blocks_in(ARCTRACE_PHASE_SHARED) == 1);
  CHECK(test.drain().round() > 0);
  CHECK(test.drain().round() > 0);
  CHECK(test.blocks_in(ARCTRACE_PHASE_FREE) == 8);
  CHECK(Recycle<IpcAtomics>::state(view, got.index).generation == 1);
}

TEST_CASE("drain: a taker that died before it opened its block leaves no chunk") {
  TestSession test(small_buffer(1024, 8));
  const BufferView& view = test.view();
  view.control().slot_next = 1;
  view.slot(0).lock = kOwnerDied;
  REQUIRE(Handout<IpcAtomics>::take(view, 0, view.slot(0).current));
  view.block_header(0).writer = 5;  // the writer had begun with the header
  while (test.drain().round() > 0) {
  }
  CHECK(test.blocks_in(ARCTRACE_PHASE_FREE) == 8);
  CHECK(view.block_header(0).writer == ARCTRACE_FILL);
  CHECK(test.finish().blocks.empty());
}

TEST_CASE("drain: a block that a live writer names waits, and only that one") {
  TestSession test(small_buffer(1024, 8));
  const BufferView& view = test.view();
  view.control().slot_next = 2;
  view.slot(0).lock = 1;
  view.slot(1).lock = 2;
  uint64_t& chain = view.control().shared_current;
  const BlockIdentity identity{ARCTRACE_FORM_FULL, ARCTRACE_CLASS_DATA, 1, 1, 1, 1, 0, 0};
  // Slot 0 is stopped during a record; slot 1 fills the block and two more.
  SharedChain<IpcAtomics>::reserve(view, 0, 0, chain, 400, identity);
  for (int i = 0; i < 3; ++i) {
    SharedChain<IpcAtomics>::reserve(view, 1, 0, chain, 800, identity);
    SharedChain<IpcAtomics>::release(view.slot(1).active[0]);
  }
  CHECK(test.blocks_in(ARCTRACE_PHASE_CLOSED) == 3);
  CHECK(test.drain().round() == 2);
  CHECK(test.blocks_in(ARCTRACE_PHASE_CLOSED) == 1);
  CHECK(Recycle<IpcAtomics>::state(view, 0).phase == ARCTRACE_PHASE_CLOSED);
  view.slot(0).lock = kOwnerDied;  // the writer dies
  CHECK(test.drain().round() >= 1);
  CHECK(Recycle<IpcAtomics>::state(view, 0).phase == ARCTRACE_PHASE_FREE);
}

TEST_CASE("drain: a collector that died while settling is followed by the next one") {
  TestSession test(small_buffer(1024, 8));
  const BufferView& view = test.view();
  view.control().slot_next = 1;
  REQUIRE(Handout<IpcAtomics>::take(view, 0, view.slot(0).current));
  view.slot(0).lock = kBeingReaped;
  view.slot(0).lost[0] = 3;
  while (test.drain().round() > 0) {
  }
  CHECK(view.slot(0).lock == 0);
  CHECK(test.blocks_in(ARCTRACE_PHASE_FREE) == 8);
  CHECK(test.finish().lost() == 3);
}

TEST_CASE("drain: while dead slots are settled, half of those to be had stay takeable") {
  TestSession test(small_buffer(1024, 16, 8));
  const BufferView& view = test.view();
  view.control().slot_next = 8;
  const auto count = [&](uint32_t lock) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < 8; ++i) n += view.slot(i).lock == lock ? 1U : 0U;
    return n;
  };
  recorder::Reaper reaper(view);
  recorder::RecordBuilder records;
  for (const uint32_t living : {0u, 1u, 4u, 7u}) {
    CAPTURE(living);
    for (uint32_t i = 0; i < 8; ++i) view.slot(i).lock = i < living ? 100 : kOwnerDied;
    for (uint32_t dead = 8 - living; dead > 0;) {
      reaper.reap_dead(records, [](uint32_t) {});
      const uint32_t reaped = count(kBeingReaped);
      CHECK(reaped > 0);
      CHECK(8 - living - reaped >= (8 - living) / 2);
      reaper.confirm();
      CHECK(count(kBeingReaped) == 0);
      dead -= reaped;
      CHECK(count(kOwnerDied) == dead);
    }
    CHECK(count(0) == 8 - living);
  }
  // Slots that a dead collector was reaping are not free for others.
  for (uint32_t i = 0; i < 8; ++i) view.slot(i).lock = kBeingReaped;
  reaper.reap_dead(records, [](uint32_t) {});
  reaper.confirm();
  CHECK(count(0) == 8);
  // At the end no thread will need a slot.
  for (uint32_t i = 0; i < 8; ++i) view.slot(i).lock = kOwnerDied;
  reaper.allow_all();
  reaper.reap_dead(records, [](uint32_t) {});
  reaper.confirm();
  CHECK(count(0) == 8);
}

TEST_CASE("drain: losses of the dead, of the living and of nobody, each reported once") {
  TestSession test(small_buffer(384, 64));
  const std::byte big[1000] = {};
  killed_child(test, [&] {
    for (int i = 0; i < 3; ++i) arctrace_write(1, big, sizeof big);
  });
  test.drain().round();
  test.drain().round();
  test.view().control().lost[ARCTRACE_LOST_NO_SLOT] = 7;
  CHECK_CHILD([&] {
    join(test);
    for (int i = 0; i < 4; ++i) arctrace_write(1, big, sizeof big);
    const DecodedTrace trace = test.finish();
    CHECK(joined(trace.problems) == "");
    CHECK(trace.lost() == 14);
    for (const DecodedRecord& lost : trace.of_type(ARCTRACE_TYPE_LOST)) {
      const uint64_t count = lost.u64(8);
      CHECK(lost.u32(4) == (count == 7 ? ARCTRACE_LOST_SESSION : ARCTRACE_LOST_RESIDUAL));
      CHECK(lost.writer == (count == 7 ? 0 : count == 3 ? 1 : 2));
    }
    const std::vector<uint64_t> sums = recorder::session_losses(test.view());
    CHECK(sums[ARCTRACE_LOST_TOO_BIG] == 7);
    CHECK(sums[ARCTRACE_LOST_NO_SLOT] == 7);
  });
}

TEST_CASE("drain: the blocks of writers that outlive the recording are copied as live") {
  TestSession test(small_buffer(1024, 32));
  CHECK_CHILD([&] {
    join(test);
    arctrace_instant(1);
    void* held = arctrace_reserve(9, 64);
    REQUIRE(held != nullptr);
    std::fill_n(static_cast<std::byte*>(held), 64, std::byte{0x11});
    arctrace_instant(2);
    const DecodedTrace trace = test.finish();
    CHECK(joined(trace.problems) == "");
    CHECK(trace.written() == 2);
    CHECK(trace.torn() == 1);
    CHECK(test.drain().totals().unfinished == 1);
    CHECK(test.drain().totals().torn == 0);
    for (const DecodedBlock& block : trace.blocks) {
      if (block.is_compact()) CHECK(block.flags == ARCTRACE_CHUNK_LIVE_COPY);
    }
    CHECK(test.blocks_in(ARCTRACE_PHASE_OWNED) == 1);  // still the writer's
  });
}

TEST_CASE("drain: after a write error nothing is freed, so that writers count losses") {
  const recorder::BufferOptions options = small_buffer(512, 16);
  TestSession test(options);
  absl::StatusOr<recorder::TraceFile> full =
      recorder::TraceFile::create("/dev/full", recorder::SpecialFile::kWriteInto);
  REQUIRE(full.ok());
  recorder::Drain drain(test.view(), *full);
  killed_child(test, [] {
    while (arctrace_lost(nullptr) == 0) arctrace_instant(1);
  });
  for (int i = 0; i < 3; ++i) drain.round();
  drain.finish();
  CHECK(full->error() == ENOSPC);
  CHECK(test.blocks_in(ARCTRACE_PHASE_FREE) == 0);
  CHECK(test.view().control().freed == 0);
  CHECK(drain.totals().records == 0);
}

// A block of definitions that was open when the file's records were written is closed
// before the pass that cuts the file. (If the passes take a second, its copy is in the
// file anyhow.)
TEST_CASE("drain: a file of a ring has the names of its records when it is cut") {
  TestSession test(small_buffer(1024, 64));
  const TemporaryDirectory directory;
  absl::StatusOr<recorder::TraceFile> file =
      recorder::TraceFile::create(directory.path("ring"));
  REQUIRE(file.ok());
  file->write_header(test.buffer().header());
  recorder::FileLimits limits;
  limits.files = 0;
  limits.bytes = 256 << 10;
  recorder::FileRing ring(*file, test.buffer().header(), {}, limits);
  recorder::Drain drain(test.view(), *file, &ring);
  CHECK_CHILD([&] {
    join(test);
    drain.round();
    const uint32_t name = arctrace_define_name("used");
    while (ring.has_space(sizeof(arctrace_chunk_header) + 1024)) {
      for (int i = 0; i < 10; ++i) arctrace_instant(name);  // at most one block
      drain.round();
    }
    CHECK(ring.retained().count() == 0);
    for (int i = 0; i < 100; ++i) {
      arctrace_define_name(("filler " + std::to_string(i)).c_str());
    }
    drain.round();
    CHECK(ring.retained().count() == 1);
    const DecodedTrace cut = decode_trace(read_file(directory.path("ring.1")));
    CHECK(cut.of_type(ARCTRACE_TYPE_INSTANT).size() > 100);
    CHECK(joined(undefined_uses(cut)) == "");
  });
}

// The session's open block has records of a thread that got own blocks after it. It is
// written before those, because otherwise the files up to the last one would lack these
// records.
TEST_CASE("drain: a ring has a thread's records in the order of its blocks") {
  recorder::BufferOptions options = small_buffer(1024, 64);
  options.scope = ARCTRACE_SCOPE_ADAPTIVE;
  TestSession test(options);
  const TemporaryDirectory directory;
  absl::StatusOr<recorder::TraceFile> file =
      recorder::TraceFile::create(directory.path("ring"));
  REQUIRE(file.ok());
  file->write_header(test.buffer().header());
  recorder::FileLimits limits;
  limits.files = 0;
  limits.bytes = 8 << 20;
  recorder::FileRing ring(*file, test.buffer().header(), {}, limits);
  recorder::Drain drain(test.view(), *file, &ring);
  CHECK_CHILD([&] {
    join(test);
    arctrace_instant(1);
    const writer::ThreadState& state = *writer::thread_local_state.state;
    while (!state.has_own_blocks) {
      arctrace_instant(1);
      drain.round();
    }
    for (int i = 0; i < 200; ++i) arctrace_instant(1);
    while (drain.round() > 0) {
    }
    REQUIRE(file->publish().ok());
    const DecodedTrace trace = decode_trace(read_file(directory.path("ring")));
    std::vector<uint64_t> handouts;
    bool has_own = false;
    for (const DecodedBlock& block : trace.blocks) {
      if (block.header.block_class != ARCTRACE_CLASS_DATA) continue;
      handouts.push_back(block.header.handout);
      has_own = has_own || block.is_compact();
    }
    CHECK(has_own);
    CHECK(test.blocks_in(ARCTRACE_PHASE_SHARED) == 1);  // of definitions
    for (size_t i = 0; i < handouts.size(); ++i) CHECK(handouts[i] == handouts[0] + i);
  });
}

TEST_CASE("drain: any content of the buffer is drained without harm") {
  Random random(test_seed());
  for (int run = 0; run < 60; ++run) {
    TestSession test(small_buffer(384, 16, 8));
    const BufferView& view = test.view();
    auto* bytes = view.base() + ARCTRACE_CONTROL_OFFSET;
    const uint64_t size = view.geometry().total_size - ARCTRACE_CONTROL_OFFSET;
    for (uint32_t changes = random.below(4000); changes > 0; --changes) {
      const auto word = static_cast<uint32_t>(random.next() >> random.below(32));
      __builtin_memcpy(bytes + size_t{random.below(static_cast<uint32_t>(size / 4))} * 4,
                       &word, 4);
    }
    for (uint32_t i = 0; i < 16; ++i) {  // states on which the collector acts
      if (random.below(4) == 0) continue;
      const auto phase = static_cast<arctrace_phase>(random.below(8));
      view.block_header(i).state =
          BlockState{random.below(2), random.below(10), phase}.pack();
      if (random.below(2) == 0) view.block_header(i).magic = ARCTRACE_BLOCK_MAGIC;
    }
    for (uint32_t i = 0; i < 8; ++i) {
      constexpr uint32_t kWords[] = {0, 1, kOwnerDied, kBeingReaped, 0x40000005};
      if (random.below(2) == 0) view.slot(i).lock = kWords[random.below(5)];
    }
    view.control().gate = ARCTRACE_GATE_ALL;
    for (int i = 0; i < 5; ++i) test.drain().round();
    // Writers find the same content.
    CHECK_CHILD([&] {
      join(test);
      for (uint32_t i = 0; i < 100; ++i) {
        arctrace_instant(i);
        arctrace_commit(arctrace_reserve(i, 40));
        const writer::WriterCall interrupted;
        arctrace_instant(i);
      }
    });
    test.drain().round();
    const DecodedTrace trace = test.finish();
    CHECK(trace.bytes.size() >= ARCTRACE_HEADER_SIZE);
  }
}

}  // namespace
}  // namespace arctrace::testing
