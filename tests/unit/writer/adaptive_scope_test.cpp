// The adaptive scope: a thread has blocks of its own while it writes much.
#include <arctrace/arctrace.h>
#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <thread>
#include <vector>

#include "src/process/session.hpp"
#include "src/writer/thread_state.hpp"
#include "tests/support/child.hpp"
#include "tests/support/replayed_stack.hpp"
#include "tests/support/test_session.hpp"

namespace arctrace::testing {
namespace {

constexpr uint32_t kBlockSize = 1024;

recorder::BufferOptions adaptive(uint32_t block_count, uint32_t slot_count = 16) {
  recorder::BufferOptions options = small_buffer(kBlockSize, block_count, slot_count);
  options.scope = ARCTRACE_SCOPE_ADAPTIVE;
  return options;
}

// Attaches a process of the session in whose seconds a thread that was only preempted is
// never late. The coarse clock's seconds keep their length, so its ticks pass more
// quickly.
void attach_with_long_seconds(const TestSession& test) {
  REQUIRE(arctrace_attach(test.path().c_str()) == 0);
  writer::session.ticks_per_second *= 20;
}

// Advances the coarse clock, or else pretends that the thread began `seconds` earlier to
// write where it writes now.
void let_pass(double seconds) {
  writer::ThreadState& state = *writer::thread_local_state.state;
  const auto ticks = static_cast<uint64_t>(
      seconds * static_cast<double>(writer::session.ticks_per_second));
  if (writer::session.clock == writer::Session::kCoarseClock) {
    writer::session.coarse_base_ticks += ticks;
    return;
  }
  state.chain.since_ticks -= ticks;
  state.block.base_ticks -= ticks;
}

bool has_own_blocks() { return writer::thread_local_state.state->has_own_blocks; }

// Writes numbered events until the thread writes in the other form.
void write_until_changed(uint32_t& number) {
  const bool before = has_own_blocks();
  for (int i = 0; i < 1000 && has_own_blocks() == before; ++i) {
    arctrace_write(number++, nullptr, 0);
  }
  CHECK(has_own_blocks() != before);
}

// The one writer's ticks never decrease from block to block, and increase where exclusive
// blocks come after the chain's, because readers take those first where ticks are equal.
void check_ticks(const DecodedTrace& trace) {
  uint64_t last = 0;
  bool was_compact = true;
  for (const DecodedBlock& block : trace.blocks) {
    if (block.header.block_class != ARCTRACE_CLASS_DATA) continue;
    for (const DecodedRecord& record : block.records) {
      if (record.type == ARCTRACE_TYPE_PAD) continue;
      CHECK(record.ticks >= last + (block.is_compact() && !was_compact ? 1 : 0));
      last = record.ticks;
      was_compact = block.is_compact();
    }
  }
}

// A thread writes much, then little, three times.
void check_changes(arctrace_mode mode, bool is_coarse) {
  recorder::BufferOptions options = adaptive(200);
  options.mode = mode;
  TestSession test(options);
  CHECK_CHILD([&] {
    attach_with_long_seconds(test);
    if (is_coarse) writer::use_coarse_clock();
    uint32_t number = 0;
    arctrace_enter(1);
    for (int round = 0; round < 3; ++round) {
      CHECK_FALSE(has_own_blocks());
      const auto begin = std::chrono::steady_clock::now();
      write_until_changed(number);
      arctrace_enter(2);
      for (int i = 0; i < 100; ++i) arctrace_write(number++, nullptr, 0);
      // A thread that got no CPU for a second of the coarse clock is slow, and has
      // returned to the chain.
      const auto passed = std::chrono::steady_clock::now() - begin;
      if (!is_coarse || passed < std::chrono::milliseconds(500)) {
        CHECK(has_own_blocks());
      } else if (!has_own_blocks()) {
        write_until_changed(number);
      }
      // No longer than that, because the machine may have begun to count its ticks a
      // minute ago.
      let_pass(1.5);
      arctrace_exit(2);
      CHECK_FALSE(has_own_blocks());
      arctrace_write(number++, nullptr, 0);
    }
    arctrace_exit(1);
    const DecodedTrace trace = test.finish();
    CHECK(joined(trace.problems) == "");
    CHECK(trace.lost() == 0);
    uint32_t next = 0;
    for (const DecodedRecord& record : trace.of_writer(1)) {
      if (record.type == ARCTRACE_TYPE_EVENT) CHECK(record.u32(0) == next++);
    }
    CHECK(next == number);
    check_ticks(trace);
    const ReplayedStack replayed(trace);  // also checks each STACK
    CHECK(replayed.open().empty());
    const auto is_compact = [](const DecodedBlock& block) { return block.is_compact(); };
    CHECK(std::count_if(trace.blocks.begin(), trace.blocks.end(), is_compact) >= 6);
  });
}

TEST_CASE("adaptive scope: own blocks while a thread writes much, in order throughout") {
  for (const arctrace_mode mode : {ARCTRACE_MODE_DROP, ARCTRACE_MODE_OVERWRITE}) {
    CAPTURE(mode);
    check_changes(mode, false);
    check_changes(mode, true);
  }
}

TEST_CASE("adaptive scope: a block that a fork child named is given back") {
  TestSession test(adaptive(100));
  CHECK_CHILD([&] {
    attach_with_long_seconds(test);
    uint32_t number = 0;
    write_until_changed(number);
    // This is the state that a child has that continues with a call of its parent's.
    uint32_t* const name = writer::thread_local_state.state->slot.slot().active;
    *name = 1;
    for (uint32_t written = 0; written < 2 * kBlockSize; written += 12) {
      arctrace_write(number++, nullptr, 0);
    }
    CHECK(has_own_blocks());
    CHECK(*name == 0);
  });
}

TEST_CASE("adaptive scope: a thread gives its block up when blocks are scarce") {
  TestSession test(adaptive(100));
  CHECK_CHILD([&] {
    attach_with_long_seconds(test);
    writer::use_coarse_clock();  // everything is likely to happen within one of its ticks
    uint32_t number = 0;
    write_until_changed(number);
    test.view().control().taken += 75;
    write_until_changed(number);
    for (int i = 0; i < 100; ++i) arctrace_write(number++, nullptr, 0);
    CHECK_FALSE(has_own_blocks());
    test.view().control().taken -= 75;
    write_until_changed(number);
    const DecodedTrace trace = test.finish();
    CHECK(joined(trace.problems) == "");
    CHECK(trace.of_type(ARCTRACE_TYPE_EVENT).size() == number);
    check_ticks(trace);
  });
}

TEST_CASE("adaptive scope: who writes little stays in the chain") {
  TestSession test(adaptive(100));
  CHECK_CHILD([&] {
    attach_with_long_seconds(test);
    arctrace_instant(1);
    for (int i = 0; i < 500; ++i) {
      let_pass(0.01);  // a record each 10 ms
      arctrace_instant(1);
      REQUIRE_FALSE(has_own_blocks());
    }
  });
}

TEST_CASE("adaptive scope: a crowd needs few blocks, also if each thread was busy once") {
  constexpr uint32_t kThreads = 200;
  TestSession test(adaptive(64, kThreads + 16));
  CHECK_CHILD([&] {
    attach_with_long_seconds(test);
    uint32_t had_own_blocks = 0;
    std::vector<std::thread> threads;
    for (uint32_t i = 0; i < kThreads; ++i) {
      std::thread([&] {
        for (int record = 0; record < 100; ++record) arctrace_instant(2);
        if (has_own_blocks()) ++had_own_blocks;
        test.drain().round();
      }).join();
    }
    CHECK(had_own_blocks > kThreads / 2);
    CHECK(test.view().control().lost[ARCTRACE_LOST_NO_SLOT] == 0);
    const DecodedTrace trace = test.finish();
    CHECK(joined(trace.problems) == "");
    CHECK(trace.lost() == 0);
    CHECK(trace.of_type(ARCTRACE_TYPE_INSTANT).size() == kThreads * 100);
  });
}

TEST_CASE("adaptive scope: threads that stop get half of the blocks at most") {
  TestSession test(adaptive(32, 64));
  CHECK_CHILD([&] {
    attach_with_long_seconds(test);
    // These threads are alive and stopped writing when they had blocks of their own.
    std::vector<std::thread> threads;
    std::atomic<uint32_t> done = 0;
    std::atomic<bool> go_on = false;
    std::atomic<uint32_t> own = 0;
    constexpr uint32_t kThreads = 40;
    for (uint32_t i = 0; i < kThreads; ++i) {
      threads.emplace_back([&] {
        for (int record = 0; record < 45; ++record) arctrace_instant(3);
        if (has_own_blocks()) ++own;
        ++done;
        while (!go_on) usleep(1000);
      });
      while (done < i + 1) usleep(100);
      test.drain().round();
    }
    CHECK(own >= 8);
    CHECK(own <= 16);
    go_on = true;
    for (std::thread& thread : threads) thread.join();
    const DecodedTrace trace = test.finish();
    CHECK(joined(trace.problems) == "");
    CHECK(trace.lost() == 0);
  });
}

TEST_CASE("adaptive: who finds the chain's block full has not written what it held") {
  TestSession test(adaptive(200));
  CHECK_CHILD([&] {
    attach_with_long_seconds(test);
    arctrace_write(1, nullptr, 0);  // as quickly as possible, but few
    for (int round = 0; round < 5; ++round) {
      CHECK_CHILD([] {
        for (int i = 0; i < 100; ++i) arctrace_write(2, nullptr, 0);
        arctrace_flush();
      });
      arctrace_write(1, nullptr, 0);
      CHECK_FALSE(has_own_blocks());
    }
    const uint32_t length = ARCTRACE_FULL_HEAD_SIZE + sizeof(arctrace_event_body);
    writer::ThreadState& state = *writer::thread_local_state.state;
    state.chain.take_grant_back();
    CHECK(state.chain.budget == kBlockSize - ARCTRACE_BLOCK_HEADER_SIZE - 6 * length);
  });
}

}  // namespace
}  // namespace arctrace::testing
