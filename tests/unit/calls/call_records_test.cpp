// The entry and exit records of calls: frames that were jumped over, nested calls,
// arguments, and library calls through a stub.
#include "src/calls/call_records.hpp"

#include <arctrace/arctrace.h>
#include <doctest/doctest.h>

#include <cstring>
#include <functional>
#include <vector>

#include "src/api/shim_interface.h"
#include "tests/support/child.hpp"
#include "tests/support/lock_call.hpp"
#include "tests/support/replayed_stack.hpp"
#include "tests/support/test_session.hpp"

namespace arctrace::testing {
namespace {

// The records of `calls` in a session of small blocks, so that STACK comes often.
DecodedTrace record_calls(const std::function<void()>& calls, uint32_t block_size = 512,
                          uint32_t blocks = 4000) {
  TestSession test(small_buffer(block_size, blocks));
  CHECK_CHILD([&] {
    REQUIRE(arctrace_attach(test.path().c_str()) == 0);
    calls();
  });
  DecodedTrace trace = test.finish();
  CHECK(joined(trace.problems) == "");
  CHECK(trace.lost() == 0);
  return trace;
}

// Sets the stack's bounds, as the shim does: addresses below 10000 are on the thread's
// own stack.
void use_stack_addresses() { arctrace_shim_thread_start(1, 10000); }

TEST_CASE("call stack: matching calls are ENTER and EXIT and leave nothing open") {
  const DecodedTrace trace = record_calls([] {
    for (uint64_t i = 0; i < 300; ++i) {
      arctrace_enter(1);
      arctrace_enter(i + 2);
      arctrace_exit(i + 2);
      arctrace_exit(1);
    }
    CHECK(writer::thread_local_state.state->open.depth == 0);
  });
  CHECK(ReplayedStack(trace).open().empty());
  CHECK(trace.of_type(ARCTRACE_TYPE_ENTER).size() == 600);
  CHECK(trace.of_type(ARCTRACE_TYPE_EXIT).size() == 600);
  CHECK(trace.of_type(ARCTRACE_TYPE_EXIT_NAMED).empty());
  CHECK(trace.of_type(ARCTRACE_TYPE_UNWIND).empty());
}

TEST_CASE(
    "call records: args and retvals stand at their call's entry and exit, with their "
    "ticks") {
  const DecodedTrace trace = record_calls([] {
    uintptr_t stack[64] = {};
    const auto address = [&stack](size_t i) {
      return reinterpret_cast<uintptr_t>(stack + i);
    };
    arctrace_shim_thread_start(address(0), address(64));
    const writer::StubCall outer{stack + 50, 0, 0};
    const writer::StubCall inner{stack + 40, 0, 0};
    writer::ArgsBody body;
    body.size = 4;
    for (uint32_t i = 0; i < 200; ++i) {
      std::memcpy(body.bytes, &i, 4);
      CHECK(writer::enter_slow(1, outer.described(), outer.here(), &body));
      CHECK(writer::enter_slow(2, inner.described(), inner.here(), &body));
      CHECK_FALSE(writer::exit_innermost_slow(1, address(50), &body));
      CHECK(writer::exit_innermost_slow(2, address(40), &body));
      CHECK(writer::exit_innermost_slow(1, address(50), &body));
    }
  });
  CHECK(ReplayedStack(trace).open().empty());
  const std::vector<DecodedRecord> records = trace.of_writer(1);
  REQUIRE(records.size() == 200 * 8);
  const uint16_t order[] = {ARCTRACE_TYPE_ENTER,  ARCTRACE_TYPE_ARGUMENTS,
                            ARCTRACE_TYPE_ENTER,  ARCTRACE_TYPE_ARGUMENTS,
                            ARCTRACE_TYPE_RESULT, ARCTRACE_TYPE_EXIT,
                            ARCTRACE_TYPE_RESULT, ARCTRACE_TYPE_EXIT};
  for (size_t i = 0; i < records.size(); ++i) {
    CHECK(records[i].type == order[i % 8]);
    if (i % 2 == 1) CHECK(records[i].ticks == records[i - 1].ticks);
    const bool is_value = records[i].type >= ARCTRACE_TYPE_ARGUMENTS;
    if (is_value) CHECK(records[i].u32(0) == i / 8);
  }
}

TEST_CASE("call stack: an exit from further up unwinds what lies above it") {
  const DecodedTrace trace = record_calls([] {
    for (uint64_t key = 1; key <= 5; ++key) arctrace_enter(key);
    arctrace_exit(2);
    CHECK(writer::thread_local_state.state->open.depth == 1);
  });
  const ReplayedStack replay(trace);
  CHECK(replay.open() == std::vector<uint64_t>{1});
  CHECK(replay.unwound() == 3);
}

TEST_CASE("call stack: of a recursion the innermost frame is left") {
  const DecodedTrace trace = record_calls([] {
    for (const uint64_t key : {1u, 2u, 2u, 3u}) arctrace_enter(key);
    arctrace_exit(2);
  });
  CHECK(ReplayedStack(trace).open() == std::vector<uint64_t>{1, 2});
}

TEST_CASE("call stack: an exit that was never entered is named and leaves the stack") {
  const DecodedTrace trace = record_calls([] {
    arctrace_exit(9);
    arctrace_enter(1);
    arctrace_exit(7);
    arctrace_exit(1);
    arctrace_exit(8);
  });
  const ReplayedStack replay(trace);
  CHECK(replay.open().empty());
  CHECK(replay.orphans() == std::vector<uint64_t>{9, 7, 8});
}

TEST_CASE("call stack: frames that lie below a new one were jumped out of") {
  const DecodedTrace trace = record_calls([] {
    use_stack_addresses();
    arctrace_enter_at(1, 9000);
    arctrace_enter_at(2, 8000);
    arctrace_enter_at(3, 7000);
    arctrace_enter(4);  // no address: gone with the frame that it was called from
    arctrace_enter_at(5, 8500);  // longjmp to the first, which calls this
    CHECK(writer::thread_local_state.state->open.depth == 2);
  });
  const ReplayedStack replay(trace);
  CHECK(replay.open() == std::vector<uint64_t>{1, 5});
  CHECK(replay.unwound() == 3);
}

TEST_CASE("call stack: addresses of other stacks are not compared") {
  const DecodedTrace trace = record_calls([] {
    use_stack_addresses();
    arctrace_enter_at(1, 9000);
    arctrace_enter_at(2, 50000);  // a coroutine's
    arctrace_enter_at(3, 60000);
    arctrace_enter_at(4, 40000);
    arctrace_enter_at(5, 8000);  // back on the thread's own, deeper than the first
    CHECK(writer::thread_local_state.state->open.depth == 5);
  });
  CHECK(ReplayedStack(trace).unwound() == 0);
}

TEST_CASE("call stack: equal addresses are functions inlined into one another") {
  const DecodedTrace trace = record_calls([] {
    use_stack_addresses();
    arctrace_enter_at(1, 5000);
    arctrace_enter_at(2, 5000);
    arctrace_exit(2);
    arctrace_exit(1);
  });
  CHECK(ReplayedStack(trace).unwound() == 0);
}

TEST_CASE("call stack: deeper than what is kept, and back") {
  static constexpr uint64_t kDepth = writer::OpenFrames::kMax + 300;
  const DecodedTrace trace = record_calls(
      [] {
        for (uint64_t i = 0; i < kDepth; ++i) arctrace_enter(100 + i);
        CHECK(writer::thread_local_state.state->open.depth == kDepth);
        for (uint64_t i = kDepth; i > 0; --i) arctrace_exit(100 + i - 1);
        CHECK(writer::thread_local_state.state->open.depth == 0);
        arctrace_enter(1);
      },
      4096, 64);
  const ReplayedStack replay(trace);
  CHECK(replay.open() == std::vector<uint64_t>{1});
  CHECK(replay.orphans().empty());
  CHECK(trace.of_type(ARCTRACE_TYPE_EXIT_NAMED).size() == 300);
}

TEST_CASE("call stack: a jump out of frames too deep to be kept") {
  const DecodedTrace trace = record_calls(
      [] {
        arctrace_shim_thread_start(1, 1000000);
        for (uint64_t i = 0; i < writer::OpenFrames::kMax + 50; ++i) {
          arctrace_enter_at(100 + i, 900000 - 100 * i);
        }
        arctrace_enter_at(5, 900000 - 100 * 10 - 50);
        CHECK(writer::thread_local_state.state->open.depth == 12);
      },
      4096, 64);
  CHECK(ReplayedStack(trace).open().size() == 12);
}

TEST_CASE("call stack: frames entered while no record could be written are open") {
  TestSession test(small_buffer(512, 16));
  CHECK_CHILD([&] {
    REQUIRE(arctrace_attach(test.path().c_str()) == 0);
    arctrace_enter(1);
    while (arctrace_lost(nullptr) == 0) arctrace_instant(1);
    arctrace_enter(2);
    arctrace_exit(2);
    arctrace_enter(3);
    test.drain().round();
    arctrace_instant(2);
    const DecodedTrace trace = test.finish();
    CHECK(joined(trace.problems) == "");
    const std::vector<DecodedRecord> stacks = trace.of_type(ARCTRACE_TYPE_STACK);
    REQUIRE_FALSE(stacks.empty());
    const DecodedRecord& last = stacks.back();
    CHECK(last.u32(0) == 2);
    REQUIRE(last.u32(4) == 2);
    CHECK(last.u64(8) == 1);
    CHECK(last.u64(16) == 3);
  });
}

TEST_CASE("call stack: a vfork child's frames end with it") {
  const DecodedTrace trace = record_calls([] {
    arctrace_enter(1);
    arctrace_shim_vfork_begin();
    arctrace_enter(2);  // the child's, which then calls exec
    arctrace_enter(3);
    arctrace_shim_vfork_end(77);
    CHECK(writer::thread_local_state.state->open.depth == 1);
    arctrace_exit(1);
    CHECK(writer::thread_local_state.state->open.depth == 0);
  });
  CHECK(trace.of_type(ARCTRACE_TYPE_VFORK_BEGIN).size() == 1);
  const std::vector<DecodedRecord> ends = trace.of_type(ARCTRACE_TYPE_VFORK_END);
  REQUIRE(ends.size() == 1);
  CHECK(ends[0].u32(0) == 77);
}

struct Step {
  uint64_t key;
  uintptr_t cfa;  // 0: an exit
};

constexpr uintptr_t kStackTop = 1 << 20;

// Random calls, returns, and jumps over any number of frames, as a thread would make
// them; a jump is seen at the next call, which lies between the frame that was jumped to
// and the first one that was jumped over. `open`: the frames that are open in the end.
std::vector<Step> random_calls(Random& random, std::vector<uint64_t>& open) {
  std::vector<Step> frames;
  std::vector<Step> script;
  const auto above = [&] { return frames.empty() ? kStackTop : frames.back().cfa; };
  for (int i = 0; i < 400; ++i) {
    const uint32_t choice = random.below(10);
    Step call{1 + random.below(6), above() - 64 * (1 + uint64_t{random.below(4)})};
    if (choice >= 5 && frames.empty()) continue;
    if (choice >= 5 && choice < 9) {
      script.push_back({frames.back().key, 0});
      frames.pop_back();
      continue;
    }
    if (choice == 9) {
      const uint32_t left = random.below(static_cast<uint32_t>(frames.size()));
      const uintptr_t first_over = frames[left].cfa;
      const uintptr_t target = left == 0 ? kStackTop : frames[left - 1].cfa;
      if (target - first_over < 2) continue;
      frames.resize(left);
      call.cfa = first_over + (target - first_over) / 2;
    }
    frames.push_back(call);
    script.push_back(call);
  }
  for (const Step& frame : frames) open.push_back(frame.key);
  return script;
}

TEST_CASE("call stack: random calls, returns and jumps replay to the true stack") {
  const uint64_t seed = test_seed();
  for (uint64_t run = 0; run < 30; ++run) {
    CAPTURE(run);
    Random random(seed + run);
    std::vector<uint64_t> expected;
    const std::vector<Step> script = random_calls(random, expected);
    const DecodedTrace trace = record_calls([&] {
      arctrace_shim_thread_start(1, kStackTop + 1);
      for (const Step& step : script) {
        step.cfa != 0 ? arctrace_enter_at(step.key, step.cfa) : arctrace_exit(step.key);
      }
    });
    CHECK(ReplayedStack(trace).open() == expected);
  }
}

// A stack with the return address of a library call on it.
struct LibraryStack {
  uintptr_t words[100] = {};
  LibraryStack() {
    const auto low = reinterpret_cast<uintptr_t>(words);
    arctrace_shim_thread_start(low, low + sizeof words);
  }
  uintptr_t* return_slot(size_t index, uintptr_t return_address) {
    words[index] = return_address;
    return &words[index];
  }
};

TEST_CASE("library calls: a function that is entered through one is inside it") {
  const DecodedTrace trace = record_calls([] {
    LibraryStack stack;
    uintptr_t* slot = stack.return_slot(50, 71);
    const auto at = reinterpret_cast<uintptr_t>(slot);
    REQUIRE(arctrace_shim_call_begin(1, slot, 0, 0) == 1);
    // The inner function is instrumented, and has the same machine frame.
    const arctrace_shim_call inner = {
        at + 8, at - 40, 0,
        5,      6,       ARCTRACE_SHIM_BEGINS_FRAME | ARCTRACE_SHIM_RETURNS_TO_SHIM};
    arctrace_shim_enter(2, &inner);
    CHECK(writer::thread_local_state.state->open.depth == 2);
    REQUIRE(arctrace_shim_exit(2, at - 40) == 1);
    *slot = 99;  // the call through the stub has put it there
    arctrace_shim_call_end(slot, 0);
    CHECK(*slot == 71);
    CHECK(writer::thread_local_state.state->open.depth == 0);
    CHECK(writer::thread_local_state.calls->count() == 0);
  });
  CHECK(ReplayedStack(trace).unwound() == 0);
}

TEST_CASE("library calls: one that jumps to another ends with it") {
  const DecodedTrace trace = record_calls([] {
    LibraryStack stack;
    uintptr_t* slot = stack.return_slot(50, 71);
    REQUIRE(arctrace_shim_call_begin(1, slot, 0, 0) == 1);
    *slot = 99;
    CHECK(arctrace_shim_call_begin(2, slot, 0, ARCTRACE_SHIM_RETURNS_TO_SHIM) == 0);
    CHECK(writer::thread_local_state.state->open.depth == 2);
    arctrace_shim_call_end(slot, 0);
    CHECK(*slot == 71);
    CHECK(writer::thread_local_state.state->open.depth == 0);
  });
  CHECK(ReplayedStack(trace).unwound() == 0);
}

TEST_CASE("library calls: a new one in the slot of one that threw replaces it") {
  const DecodedTrace trace = record_calls([] {
    LibraryStack stack;
    for (uintptr_t i = 0; i < 100; ++i) {
      REQUIRE(arctrace_shim_call_begin(1, stack.return_slot(50, 71 + i % 2), 0, 0) == 1);
      CHECK(writer::thread_local_state.state->open.depth == 1);
      CHECK(writer::thread_local_state.calls->count() == 1);
    }
  });
  CHECK(ReplayedStack(trace).unwound() == 99);
}

TEST_CASE("library calls: one that is passed is over at once") {
  const DecodedTrace trace = record_calls([] {
    LibraryStack stack;
    arctrace_shim_entry_only_call(1, stack.return_slot(50, 71), 0, 0, 1);
    CHECK(writer::thread_local_state.state->open.depth == 0);
    arctrace_shim_entry_only_call(2, stack.return_slot(50, 71), 0, 0, 0);
    CHECK(writer::thread_local_state.state->open.depth == 1);
  });
  CHECK(ReplayedStack(trace).open() == std::vector<uint64_t>{2});
}

TEST_CASE("library calls: the entry of a lock call has its locks, on either path") {
  for (const arctrace_shim_filter& filter :
       {arctrace_shim_filter{}, {0, 0, 1}, {0, 0, uint64_t{1} << 40}}) {
    CAPTURE(filter.min_ns);
    const DecodedTrace trace = record_calls([&] {
      start_lock_calls();
      if (filter.min_ns != 0) arctrace_shim_set_filter(&filter);
      for (uint64_t i = 0; i < 100; ++i) {
        call_with_locks(5, 1, [] { call_with_locks(6, 2, [] { arctrace_instant(1); }); });
      }
      CHECK(writer::thread_local_state.state->open.depth == 0);
      CHECK(writer::thread_local_state.calls->count() == 0);
    });
    const std::vector<DecodedRecord> entries = trace.of_type(ARCTRACE_TYPE_ENTER);
    REQUIRE(entries.size() == 200);
    for (size_t i = 0; i < entries.size(); ++i) {
      const uint64_t key = 5 + i % 2;
      const uint32_t locks = 1 + i % 2;
      REQUIRE(entries[i].body.size() == 8 + 8 * locks);
      CHECK(entries[i].u64(0) == key);
      for (uint32_t lock = 1; lock <= locks; ++lock) {
        CHECK(entries[i].u64(8 * size_t{lock}) == lock_of(key, lock));
      }
    }
    CHECK(trace.of_type(ARCTRACE_TYPE_ARGUMENTS).empty());
    CHECK(trace.of_type(ARCTRACE_TYPE_EXIT).size() == 200);
  }
}

}  // namespace
}  // namespace arctrace::testing
