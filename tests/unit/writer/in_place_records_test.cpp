// Records that are reserved in place in one call and committed in a later one.
#include "src/writer/in_place_records.hpp"

#include <arctrace/arctrace.h>
#include <doctest/doctest.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstring>
#include <vector>

#include "src/recorder/buffer/recording_control.hpp"
#include "src/writer/writer_call.hpp"
#include "tests/support/child.hpp"
#include "tests/support/test_session.hpp"

namespace arctrace::testing {
namespace {

recorder::BufferOptions buffer_options(arctrace_scope scope, uint32_t block_size = 512,
                                       uint32_t blocks = 64) {
  recorder::BufferOptions options = small_buffer(block_size, blocks);
  options.scope = scope;
  return options;
}

constexpr arctrace_scope kScopes[] = {ARCTRACE_SCOPE_THREAD, ARCTRACE_SCOPE_SHARED,
                                      ARCTRACE_SCOPE_ADAPTIVE};

void* reserve_text(uint32_t event, const char* text) {
  void* payload = arctrace_reserve(event, 8);
  if (payload != nullptr) std::memcpy(payload, text, 8);
  return payload;
}

TEST_CASE("held: committed records are there, discarded ones are padding") {
  for (const arctrace_scope scope : kScopes) {
    TestSession test(buffer_options(scope));
    CHECK_CHILD([&] {
      REQUIRE(arctrace_attach(test.path().c_str()) == 0);
      void* first = reserve_text(1, "first___");
      void* second = reserve_text(2, "second__");
      void* third = reserve_text(3, "third___");
      arctrace_commit(third);
      arctrace_discard(first);
      arctrace_commit(second);
      arctrace_commit(second);  // ignored: it was committed already
      arctrace_commit(&first);  // ignored: not a payload of ours
      arctrace_discard(nullptr);
      for (const uint32_t name : test.view().slot(0).held) CHECK(name == 0);
    });
    const DecodedTrace trace = test.finish();
    CHECK(joined(trace.problems) == "");
    const std::vector<DecodedRecord> events = trace.of_type(ARCTRACE_TYPE_EVENT);
    REQUIRE(events.size() == 2);
    CHECK(events[0].u32(0) == 2);
    CHECK(events[0].text(4, 8) == "second__");
    CHECK(events[1].text(4, 8) == "third___");
    CHECK(trace.of_type(ARCTRACE_TYPE_PAD).size() == 1);
    CHECK(trace.lost() == 0);
  }
}

TEST_CASE("held: a filter of fields is asked when the record is committed") {
  for (const arctrace_scope scope : kScopes) {
    TestSession test(buffer_options(scope));
    REQUIRE(
        recorder::set_record_filter(test.view(), {"where:n >= 5", sizeof "where:n >= 5"})
            .ok());
    CHECK_CHILD([&] {
      REQUIRE(arctrace_attach(test.path().c_str()) == 0);
      const arctrace_field field = {"n", ARCTRACE_FIELD_U32};
      const uint32_t event = arctrace_define_event("step", 0, &field, 1);
      const uint32_t other = arctrace_define_event("other", 0, nullptr, 0);
      void* held[3] = {};
      for (uint32_t n = 4; n < 7; ++n) {
        held[n - 4] = arctrace_reserve(event, sizeof n);
        REQUIRE(held[n - 4] != nullptr);
        std::memcpy(held[n - 4], &n, sizeof n);
        arctrace_write(event, &n, sizeof n);
      }
      for (void* one : {held[2], held[0], held[1]}) arctrace_commit(one);
      arctrace_commit(arctrace_reserve(other, 0));   // it has no such field
      arctrace_discard(arctrace_reserve(event, 4));  // no filter excludes that
      for (const uint32_t name : test.view().slot(0).held) CHECK(name == 0);
      CHECK(test.view().slot(0).filtered_out == 3);
    });
    const DecodedTrace trace = test.finish();
    CHECK(joined(trace.problems) == "");
    std::vector<uint32_t> numbers;
    for (const DecodedRecord& record : trace.of_type(ARCTRACE_TYPE_EVENT)) {
      numbers.push_back(record.u32(4));
    }
    std::sort(numbers.begin(), numbers.end());
    CHECK(numbers == std::vector<uint32_t>{5, 5, 6, 6});
    CHECK(trace.lost() == 0);
  }
}

TEST_CASE("held: at most four at a time, the next one counts as lost") {
  TestSession test(buffer_options(ARCTRACE_SCOPE_THREAD));
  CHECK_CHILD([&] {
    REQUIRE(arctrace_attach(test.path().c_str()) == 0);
    void* held[ARCTRACE_HELD_COUNT];
    for (void*& payload : held) payload = reserve_text(1, "held____");
    CHECK(arctrace_reserve(2, 8) == nullptr);
    uint64_t lost[ARCTRACE_LOST_CAUSES] = {};
    CHECK(arctrace_lost(lost) == 1);
    CHECK(lost[ARCTRACE_LOST_NESTED] == 1);
    arctrace_discard(held[2]);
    CHECK(reserve_text(3, "again___") != nullptr);
    CHECK(arctrace_lost(nullptr) == 1);
  });
}

TEST_CASE("held: the block is not recycled before the record is settled") {
  for (const arctrace_scope scope : kScopes) {
    CAPTURE(scope);
    TestSession test(buffer_options(scope));
    CHECK_CHILD([&] {
      REQUIRE(arctrace_attach(test.path().c_str()) == 0);
      void* payload = reserve_text(77, "patient_");
      REQUIRE(payload != nullptr);
      const uint32_t block = test.view().slot(0).held[0] - 1;
      for (uint32_t round = 0; round < 20; ++round) {
        for (uint32_t i = 0; i < 30; ++i) arctrace_instant(i);
        test.drain().round();
      }
      const BlockState state = Recycle<IpcAtomics>::state(test.view(), block);
      CHECK(state.phase == ARCTRACE_PHASE_CLOSED);
      CHECK(state.generation == 0);
      arctrace_commit(payload);
      test.drain().round();
      CHECK(Recycle<IpcAtomics>::state(test.view(), block).generation == 1);
      const DecodedTrace trace = test.finish();
      CHECK(joined(trace.problems) == "");
      const std::vector<DecodedRecord> events = trace.of_type(ARCTRACE_TYPE_EVENT);
      REQUIRE(events.size() == 1);
      CHECK(events[0].text(4, 8) == "patient_");
      CHECK(trace.written() + trace.lost() == 601);
    });
  }
}

TEST_CASE(
    "held: a dead holder's record is torn, its block recycled, and that is reported") {
  for (const arctrace_scope scope : kScopes) {
    CAPTURE(scope);
    TestSession test(buffer_options(scope));
    const int pid = start_child([&] {
      REQUIRE(arctrace_attach(test.path().c_str()) == 0);
      reserve_text(77, "never___");
      for (uint32_t i = 0; i < 60; ++i) arctrace_instant(i);  // this closes the block
      kill(getpid(), SIGKILL);
    });
    CHECK(wait_for_child(pid) == "signal 9");
    const DecodedTrace trace = test.finish();
    CHECK(joined(trace.problems) == "");
    CHECK(trace.torn() == 1);
    CHECK(trace.written() == 60);
    CHECK(test.drain().totals().torn == 1);
    CHECK(test.drain().totals().records == 60);
    CHECK(test.blocks_in(ARCTRACE_PHASE_CLOSED) == 0);
    for (const DecodedBlock& block : trace.blocks) {
      for (const DecodedRecord& record : block.records) {
        if (record.in_progress) CHECK(block.flags == ARCTRACE_CHUNK_OWNER_DIED);
      }
    }
  }
}

TEST_CASE("held: a fork child has none, and its parent's are the parent's") {
  TestSession test(buffer_options(ARCTRACE_SCOPE_THREAD));
  CHECK_CHILD([&] {
    REQUIRE(arctrace_attach(test.path().c_str()) == 0);
    void* payload = reserve_text(5, "parents_");
    CHECK_CHILD([payload] {
      arctrace_commit(payload);
      arctrace_instant(1);
      arctrace_discard(payload);
    });
    CHECK(test.view().slot(0).held[0] != 0);
    arctrace_commit(payload);
  });
  const DecodedTrace trace = test.finish();
  CHECK(joined(trace.problems) == "");
  CHECK(trace.of_type(ARCTRACE_TYPE_EVENT).size() == 1);
  CHECK(trace.written() == 2);
}

void* reserved_in_handler;

TEST_CASE("held: reserved in a signal handler, committed after it") {
  for (const arctrace_scope scope : kScopes) {
    TestSession test(buffer_options(scope));
    CHECK_CHILD([&] {
      REQUIRE(arctrace_attach(test.path().c_str()) == 0);
      signal(SIGUSR1, [](int) { reserved_in_handler = reserve_text(9, "handler_"); });
      {
        const writer::WriterCall interrupted;
        raise(SIGUSR1);
      }
      void* own = reserve_text(1, "own_____");
      CHECK(own != reserved_in_handler);
      arctrace_commit(reserved_in_handler);
      arctrace_commit(own);
    });
    const DecodedTrace trace = test.finish();
    CHECK(joined(trace.problems) == "");
    CHECK(trace.of_type(ARCTRACE_TYPE_EVENT).size() == 2);
  }
}

TEST_CASE("held: calls that interrupt another one leave the first place to it") {
  for (const arctrace_scope scope : kScopes) {
    TestSession test(buffer_options(scope));
    CHECK_CHILD([&] {
      REQUIRE(arctrace_attach(test.path().c_str()) == 0);
      arctrace_instant(1);
      const arctrace_writer_slot& slot = test.view().slot(0);
      void* held[ARCTRACE_HELD_COUNT] = {};
      {
        const writer::WriterCall interrupted;
        for (uint32_t i = 1; i < ARCTRACE_HELD_COUNT; ++i) {
          held[i] = reserve_text(i, "handler_");
          CHECK(held[i] != nullptr);
        }
        CHECK(arctrace_reserve(9, 8) == nullptr);
        CHECK(slot.held[0] == 0);
      }
      held[0] = reserve_text(4, "own_____");
      CHECK(slot.held[0] != 0);
      for (void* payload : held) arctrace_commit(payload);
      for (const uint32_t name : slot.held) CHECK(name == 0);
    });
    const DecodedTrace trace = test.finish();
    CHECK(joined(trace.problems) == "");
    CHECK(trace.of_type(ARCTRACE_TYPE_EVENT).size() == ARCTRACE_HELD_COUNT);
    CHECK(trace.lost() == 1);
  }
}

// A handler jumps out of the writer, as the call that it abandoned finds out.
void jump_out_of_nested_call() {
  const writer::WriterCall left;
  writer::thread_local_state.nesting = 1;
}

TEST_CASE("held: a block stays held when a handler has jumped") {
  TestSession test(buffer_options(ARCTRACE_SCOPE_THREAD));
  CHECK_CHILD([&] {
    REQUIRE(arctrace_attach(test.path().c_str()) == 0);
    arctrace_instant(1);
    writer::ThreadState& state = *writer::thread_local_state.state;
    uint32_t pin = writer::kNotPinned;
    {
      const writer::WriterCall call;
      pin = writer::pin_block(state, state.block.taken.index);
    }
    REQUIRE(pin != writer::kNotPinned);
    jump_out_of_nested_call();
    CHECK(test.view().slot(0).held[pin] == state.block.taken.index + 1);
    arctrace_discard(reserve_text(1, "another_"));
    CHECK(test.view().slot(0).held[pin] == state.block.taken.index + 1);
    writer::unpin_block(state, pin);
    CHECK(test.view().slot(0).held[pin] == 0);
  });
}

TEST_CASE("held: a place that a jump left half taken is free, and names no block") {
  TestSession test(buffer_options(ARCTRACE_SCOPE_THREAD));
  CHECK_CHILD([&] {
    REQUIRE(arctrace_attach(test.path().c_str()) == 0);
    arctrace_instant(1);
    arctrace_writer_slot& slot = test.view().slot(0);
    slot.held[0] = writer::thread_local_state.state->block.taken.index + 1;
    jump_out_of_nested_call();
    CHECK(slot.held[0] == 0);
  });
}

// The stores of a fork child that continues with its parent's call, with a wiped state.
TEST_CASE("held: a wiped state commits nothing, and stores in no slot") {
  TestSession test(buffer_options(ARCTRACE_SCOPE_THREAD));
  CHECK_CHILD([&] {
    REQUIRE(arctrace_attach(test.path().c_str()) == 0);
    void* payload = reserve_text(5, "parents_");
    REQUIRE(payload != nullptr);
    const uint32_t name = test.view().slot(0).held[0];
    CHECK_CHILD([payload] {
      writer::ThreadState& state = *writer::thread_local_state.state;
      REQUIRE(state.slot.is_wiped());
      // The state of reserve_first() when it was interrupted after the record was begun.
      state.places[0] = {reinterpret_cast<uintptr_t>(payload),
                         static_cast<std::byte*>(payload) - 12,
                         ARCTRACE_WORD0(ARCTRACE_TYPE_EVENT, 20), false};
      arctrace_commit(payload);
      arctrace_discard(payload);
      writer::unpin_block(state, 0);
    });
    CHECK(test.view().slot(0).held[0] == name);
    arctrace_discard(payload);
  });
  const DecodedTrace trace = test.finish();
  CHECK(joined(trace.problems) == "");
  CHECK(trace.of_type(ARCTRACE_TYPE_EVENT).empty());
}

}  // namespace
}  // namespace arctrace::testing
