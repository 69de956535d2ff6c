// Records as the writer puts them into exclusive and shared blocks, in each mode and
// scope.
#include <arctrace/arctrace.h>
#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <thread>

#include "src/api/shim_interface.h"
#include "src/os/kernel_use.hpp"
#include "src/process/session.hpp"
#include "src/recorder/buffer/recording_control.hpp"
#include "src/writer/record.hpp"
#include "tests/support/child.hpp"
#include "tests/support/test_session.hpp"

namespace arctrace::testing {
namespace {

recorder::BufferOptions with_scope(recorder::BufferOptions options,
                                   arctrace_scope scope) {
  options.scope = scope;
  return options;
}

std::vector<std::byte> pattern(size_t size) {
  std::vector<std::byte> bytes(size);
  for (size_t i = 0; i < size; ++i) bytes[i] = std::byte(i * 31 + 7);
  return bytes;
}

void write_sized(size_t size) {
  const std::vector<std::byte> payload = pattern(size);
  arctrace_write(static_cast<uint32_t>(size), payload.data(), size);
}

// Checks that the payloads of all events whose id is their size are as written.
void check_sized(const DecodedTrace& trace, size_t count) {
  const std::vector<DecodedRecord> events = trace.of_type(ARCTRACE_TYPE_EVENT);
  CHECK(events.size() == count);
  for (const DecodedRecord& event : events) {
    const size_t size = event.u32(0);
    CAPTURE(size);
    REQUIRE(event.body.size() == 4 + (size + 3) / 4 * 4);
    const std::vector<std::byte> expected = pattern(size);
    CHECK(std::equal(expected.begin(), expected.end(), event.body.begin() + 4));
    for (size_t i = 4 + size; i < event.body.size(); ++i) {
      CHECK(event.body[i] == std::byte{0});
    }
  }
}

TEST_CASE("writer: payloads of every size, in both scopes") {
  for (const arctrace_scope scope : {ARCTRACE_SCOPE_THREAD, ARCTRACE_SCOPE_SHARED}) {
    CAPTURE(scope);
    TestSession test(with_scope(small_buffer(1024, 1000), scope));
    CHECK_CHILD([&] {
      join(test);
      for (size_t size = 0; size < 700; ++size) write_sized(size);
    });
    const DecodedTrace trace = test.finish();
    CHECK(joined(trace.problems) == "");
    CHECK(trace.lost() == 0);
    check_sized(trace, 700);
  }
}

TEST_CASE("writer: too big is counted, and what is written next is sound") {
  struct Limits {
    uint32_t block_size;
    arctrace_scope scope;
    size_t largest;
  };
  // A block contains its header, in compact form a STACK of 16 bytes, and the record's
  // head.
  const Limits limits[] = {{384, ARCTRACE_SCOPE_THREAD, 384 - 128 - 16 - 12},
                           {384, ARCTRACE_SCOPE_SHARED, 384 - 128 - 20},
                           {64u << 10, ARCTRACE_SCOPE_THREAD, 65536 - 128 - 16 - 12},
                           {128u << 10, ARCTRACE_SCOPE_THREAD, ARCTRACE_PAYLOAD_MAX},
                           {128u << 10, ARCTRACE_SCOPE_SHARED, ARCTRACE_PAYLOAD_MAX},
                           {1u << 20, ARCTRACE_SCOPE_THREAD, ARCTRACE_PAYLOAD_MAX},
                           {1u << 20, ARCTRACE_SCOPE_SHARED, ARCTRACE_PAYLOAD_MAX}};
  for (const Limits& limit : limits) {
    CAPTURE(limit.block_size);
    CAPTURE(limit.scope);
    TestSession test(with_scope(small_buffer(limit.block_size, 64), limit.scope));
    CHECK_CHILD([&] {
      join(test);
      write_sized(limit.largest);
      CHECK(arctrace_lost(nullptr) == 0);
      const std::vector<std::byte> more(limit.largest + 70000);
      uint64_t lost = 0;
      for (const size_t size :
           {limit.largest + 1, limit.largest + 5, size_t{ARCTRACE_PAYLOAD_MAX} + 1,
            more.size(), SIZE_MAX}) {
        CAPTURE(size);
        write_sized(4);
        arctrace_write(1, more.data(), size);
        CHECK(arctrace_lost(nullptr) == ++lost);
        CHECK(arctrace_reserve(1, size) == nullptr);
        CHECK(arctrace_lost(nullptr) == ++lost);
      }
      write_sized(limit.largest);
    });
    const DecodedTrace trace = test.finish();
    CHECK(joined(trace.problems) == "");
    check_sized(trace, 7);
    CHECK(trace.lost() == 10);
    for (const DecodedRecord& lost : trace.of_type(ARCTRACE_TYPE_LOST)) {
      CHECK(lost.u32(0) == ARCTRACE_LOST_TOO_BIG);
    }
  }
}

TEST_CASE("writer: ticks that do not fit a delta get a TIME record") {
  TestSession test(small_buffer(1024, 16));
  CHECK_CHILD([&] {
    join(test);
    arctrace_instant(1);
    arctrace_instant(1);
    writer::ThreadState& state = *writer::thread_local_state.state;
    // The block looks as if it had been opened 2^33 ticks ago.
    constexpr uint64_t kLongAgo = uint64_t{1} << 33;
    state.block.base_ticks -= kLongAgo;
    writer::session.view.block_header(state.block.taken.index).base_ticks -= kLongAgo;
    const uint64_t before = writer::session_ticks();
    arctrace_instant(2);
    arctrace_instant(3);
    CHECK(state.block.base_ticks >= before);
    CHECK(state.block.serial == 1);  // in the same block
  });
  const DecodedTrace trace = test.finish();
  CHECK(joined(trace.problems) == "");
  CHECK(trace.of_type(ARCTRACE_TYPE_TIME).size() == 1);
  const std::vector<DecodedRecord> instants = trace.of_type(ARCTRACE_TYPE_INSTANT);
  REQUIRE(instants.size() == 4);
  CHECK(instants[2].ticks > instants[1].ticks + (uint64_t{1} << 32));
  CHECK(instants[3].ticks >= instants[2].ticks);
}

TEST_CASE("writer: a TIME record that does not fit changes the block") {
  TestSession test(small_buffer(384, 64));
  CHECK_CHILD([&] {
    join(test);
    arctrace_instant(1);
    writer::ThreadState& state = *writer::thread_local_state.state;
    while (state.block.end - state.block.pos >= 12 + 16) arctrace_instant(2);
    REQUIRE(state.block.end - state.block.pos >= 12);
    state.block.base_ticks -= uint64_t{1} << 33;
    writer::session.view.block_header(state.block.taken.index).base_ticks -= uint64_t{1}
                                                                             << 33;
    arctrace_instant(3);
    CHECK(state.block.serial == 2);
  });
  const DecodedTrace trace = test.finish();
  CHECK(joined(trace.problems) == "");
  CHECK(trace.of_type(ARCTRACE_TYPE_TIME).empty());
}

TEST_CASE("writer: a clock that goes back reads as no time passed") {
  TestSession test(small_buffer(1024, 16));
  constexpr uint64_t kAhead = uint64_t{1} << 40;
  CHECK_CHILD([&] {
    join(test);
    arctrace_instant(1);
    writer::ThreadState& state = *writer::thread_local_state.state;
    state.block.base_ticks += kAhead;
    writer::session.view.block_header(state.block.taken.index).base_ticks += kAhead;
    arctrace_instant(2);
    arctrace_instant(3);
    CHECK(state.block.serial == 1);
  });
  const DecodedTrace trace = test.finish();
  CHECK(joined(trace.problems) == "");
  const std::vector<DecodedRecord> instants = trace.of_type(ARCTRACE_TYPE_INSTANT);
  REQUIRE(instants.size() == 3);
  CHECK(instants[2].ticks == instants[1].ticks);
}

TEST_CASE("writer: an interrupted thread's handler writes to the shared chain") {
  TestSession test(small_buffer(1024, 16));
  CHECK_CHILD([&] {
    join(test);
    arctrace_instant(1);
    const std::byte* pos = writer::thread_local_state.state->block.pos;
    {
      const writer::WriterCall interrupted;
      arctrace_instant(2);
      CHECK(writer::thread_local_state.state->block.pos == pos);
      CHECK(writer::thread_local_state.nesting == 0);
      CHECK(writer::session.view.slot(writer::thread_local_state.state->slot.index)
                .active[1] == 0);
    }
    arctrace_instant(3);
    CHECK(writer::thread_local_state.state->block.pos > pos);
  });
  const DecodedTrace trace = test.finish();
  CHECK(joined(trace.problems) == "");
  REQUIRE(trace.of_type(ARCTRACE_TYPE_INSTANT).size() == 3);
  const std::vector<DecodedRecord> own = trace.of_writer(1);
  REQUIRE(own.size() == 3);
  for (uint32_t i = 0; i < 3; ++i) CHECK(own[i].u32(0) == i + 1);
}

// Nests as deep as signal handlers may interrupt one another in the writer, then one
// deeper.
void nest(uint32_t depth, const std::function<void()>& innermost) {
  const writer::WriterCall writer_call;
  depth > 1 ? nest(depth - 1, innermost) : innermost();
}

TEST_CASE("writer: handlers nested too deep lose their records, counted by the session") {
  TestSession test(small_buffer(1024, 16));
  CHECK_CHILD([&] {
    join(test);
    nest(ARCTRACE_ACTIVE_DEPTH - 1, [] { arctrace_instant(1); });
    CHECK(test.view().control().lost[ARCTRACE_LOST_NESTED] == 0);
    nest(ARCTRACE_ACTIVE_DEPTH, [] {
      arctrace_instant(2);
      arctrace_write(2, nullptr, 0);
      arctrace_text("lost");
      arctrace_counter(2, 2);
      arctrace_mark("lost");
      CHECK(arctrace_reserve(2, 8) == nullptr);
      arctrace_enter(2);
      arctrace_exit(2);
    });
    arctrace_instant(3);
    CHECK(writer::thread_local_state.nesting == 0);
    CHECK(writer::thread_local_state.guard == 0);
    CHECK(writer::thread_local_state.state->open.depth == 0);
  });
  CHECK(test.view().control().lost[ARCTRACE_LOST_NESTED] == 8);
  const DecodedTrace trace = test.finish();
  CHECK(joined(trace.problems) == "");
  CHECK(trace.written() == 2);
  CHECK(trace.lost() == 8);
}

TEST_CASE(
    "writer: in the chain, once in an eighth of a second a STACK lists all frames") {
  constexpr uint32_t kDepth = 6;
  recorder::BufferOptions options = small_buffer(1024, 64);
  options.scope = ARCTRACE_SCOPE_SHARED;
  TestSession test(options);
  CHECK_CHILD([&] {
    join(test);
    writer::session.ticks_per_second *= 1000;  // so that no eighth passes by itself
    for (uint32_t i = 0; i < kDepth; ++i) arctrace_enter(i + 1);
    for (int i = 0; i < 200; ++i) arctrace_instant(1);
    writer::session.ticks_per_second = 8;  // the eighth has passed
    for (int i = 0; i < 200; ++i) arctrace_instant(1);
  });
  const DecodedTrace trace = test.finish();
  CHECK(joined(trace.problems) == "");
  std::vector<uint32_t> counts;
  for (const DecodedRecord& record : trace.of_type(ARCTRACE_TYPE_STACK)) {
    if (record.u32(0) == kDepth) counts.push_back(record.u32(4));
  }
  // By the block: first come those that list the innermost four, then those that list
  // all.
  REQUIRE(counts.size() >= 4);
  CHECK(counts.front() == 4);
  CHECK(counts.back() == kDepth);
  CHECK(std::is_sorted(counts.begin(), counts.end()));
}

TEST_CASE("writer: what is no record is no loss, however deep it is called") {
  TestSession test(small_buffer(4096, 16));
  CHECK_CHILD([&] {
    join(test);
    arctrace_instant(1);
    nest(ARCTRACE_ACTIVE_DEPTH, [] {
      arctrace_flush();
      arctrace_thread_name("deep");
      arctrace_define_name("deep");
      arctrace_define_event("deep", 0, nullptr, 0);
      arctrace_commit(nullptr);
    });
    void* payload = arctrace_reserve(5, 4);
    REQUIRE(payload != nullptr);
    std::memset(payload, 0, 4);
    nest(ARCTRACE_ACTIVE_DEPTH, [payload] { arctrace_commit(payload); });
  });
  const DecodedTrace trace = test.finish();
  CHECK(joined(trace.problems) == "");
  CHECK(trace.written() == 2);
  CHECK(trace.lost() == 0);
}

TEST_CASE("writer: flush hands the block over at once, and only once") {
  TestSession test(small_buffer(4096, 16));
  CHECK_CHILD([&] {
    join(test);
    arctrace_instant(1);
    const uint32_t closed = test.blocks_in(ARCTRACE_PHASE_CLOSED);
    arctrace_flush();
    arctrace_flush();
    CHECK(test.blocks_in(ARCTRACE_PHASE_CLOSED) == closed + 1);
    arctrace_instant(2);
    CHECK(test.blocks_in(ARCTRACE_PHASE_OWNED) == 1);
  });
  const DecodedTrace trace = test.finish();
  CHECK(joined(trace.problems) == "");
  CHECK(trace.written() == 2);
}

TEST_CASE("writer: after detach nothing is written any more, by any thread") {
  TestSession test(small_buffer(4096, 16));
  CHECK_CHILD([&] {
    join(test);
    arctrace_instant(1);
    const uint32_t closed = test.blocks_in(ARCTRACE_PHASE_CLOSED);
    arctrace_detach();
    CHECK(test.blocks_in(ARCTRACE_PHASE_CLOSED) == closed + 1);
    CHECK(arctrace_enabled(ARCTRACE_GATE_ALL) == 0);
    arctrace_instant(2);
    std::thread([] { arctrace_instant(3); }).join();
    CHECK_CHILD([] { arctrace_instant(4); });
    CHECK(arctrace_attach(test.path().c_str()) == -EALREADY);
  });
  const DecodedTrace trace = test.finish();
  CHECK(trace.written() == 1);
  CHECK(trace.lost() == 0);
}

TEST_CASE("writer: the gate lets through what its bits allow") {
  TestSession test(small_buffer(4096, 16));
  CHECK_CHILD([&] {
    join(test);
    for (uint32_t gate = 0; gate <= ARCTRACE_GATE_ALL; ++gate) {
      recorder::set_gate(test.buffer().view(), gate);
      arctrace_enter(1);
      arctrace_exit(1);
      arctrace_write(1, nullptr, 0);
      arctrace_commit(arctrace_reserve(1, 0));
      arctrace_instant(1);
      arctrace_counter(1, 1);
      arctrace_text("%d", 1);
      arctrace_mark("1");
    }
  });
  const DecodedTrace trace = test.finish();
  CHECK(joined(trace.problems) == "");
  CHECK(trace.of_type(ARCTRACE_TYPE_ENTER).size() == 8);
  CHECK(trace.of_type(ARCTRACE_TYPE_EXIT).size() == 8);
  CHECK(trace.of_type(ARCTRACE_TYPE_EVENT).size() == 16);
  CHECK(trace.of_type(ARCTRACE_TYPE_INSTANT).size() == 8);
  CHECK(trace.of_type(ARCTRACE_TYPE_COUNTER).size() == 8);
  CHECK(trace.of_type(ARCTRACE_TYPE_TEXT).size() == 8);
  CHECK(trace.of_type(ARCTRACE_TYPE_MARK).size() == 8);
}

TEST_CASE("writer: past the high-water mark the collector is woken once a round") {
  // The buffer is far larger than the definitions, some of which come from sanitizers'
  // libraries.
  recorder::BufferOptions options = small_buffer(384, 512);
  options.high_water_percent = 50;
  TestSession test(options);
  arctrace_control& control = test.view().control();
  CHECK(control.high_water_blocks == 256);
  CHECK_CHILD([&] {
    join(test);
    control.wake = 0;  // the collector had to read the gate
    while (control.taken < 255) arctrace_instant(1);
    CHECK(control.wake == 0);
    while (control.taken < 256) arctrace_instant(1);
    CHECK(control.wake == 1);
    control.wake = 0;  // the collector sleeps again, and the mark is still passed
    while (control.taken < 257) arctrace_instant(1);
    CHECK(control.wake == 1);
    arctrace_shim_forbid(kAllUses);
    control.wake = 0;
    while (control.taken < 264) arctrace_instant(1);
    CHECK(control.wake == 0);
  });
}

TEST_CASE("writer: in a buffer that stays full a lost record asks and wakes nobody") {
  for (const arctrace_scope scope : {ARCTRACE_SCOPE_THREAD, ARCTRACE_SCOPE_SHARED}) {
    CAPTURE(scope);
    // There are so many blocks that the last ones are reserved for definitions.
    recorder::BufferOptions options = small_buffer(384, 512);
    options.scope = scope;
    options.high_water_percent = 50;
    TestSession test(options);
    arctrace_control& control = test.view().control();
    CHECK_CHILD([&] {
      join(test);
      while (arctrace_lost(nullptr) < 2) arctrace_instant(1);
      CHECK(control.taken < 512);
      const uint64_t next = control.next;
      for (int i = 0; i < 10; ++i) {
        control.wake = 0;
        arctrace_instant(1);
        CHECK(control.wake == 0);
      }
      CHECK(control.next == next);
      CHECK(arctrace_lost(nullptr) == 12);
    });
  }
}

TEST_CASE("writer: a process whose definitions have no room asks once, too") {
  for (const arctrace_scope scope : {ARCTRACE_SCOPE_THREAD, ARCTRACE_SCOPE_SHARED}) {
    CAPTURE(scope);
    recorder::BufferOptions options =
        small_buffer(384, 32);  // none is reserved for definitions
    options.scope = scope;
    TestSession test(options);
    arctrace_control& control = test.view().control();
    const auto fill = [&] {
      join(test);
      while (arctrace_lost(nullptr) < 2) arctrace_instant(1);
      const uint64_t next = control.next;
      for (int i = 0; i < 10; ++i) arctrace_instant(1);
      CHECK(control.next == next);
      CHECK(arctrace_lost(nullptr) == 12);
    };
    CHECK_CHILD(fill);
    CHECK_CHILD([&] {
      join(test);
      for (int i = 0; i < 2; ++i) arctrace_instant(1);
      const uint64_t next = control.next;
      for (int i = 0; i < 10; ++i) arctrace_instant(1);
      CHECK(control.next == next);
    });
  }
}

}  // namespace
}  // namespace arctrace::testing
