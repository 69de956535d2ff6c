// A signal handler jumps out of a writer call, after each of the call's instructions.
#include <arctrace/arctrace.h>
#include <doctest/doctest.h>
#include <unistd.h>

#include <algorithm>
#include <csetjmp>
#include <functional>

#include "src/api/shim_interface.h"
#include "src/process/session.hpp"
#include "src/stack/coroutine_stacks.hpp"
#include "src/writer/record.hpp"
#include "tests/stress/cuts.hpp"
#include "tests/stress/writer_calls.hpp"
#include "tests/support/hooked_function.hpp"
#include "tests/support/replayed_stack.hpp"
#include "tests/support/single_step.hpp"

namespace arctrace::testing {
namespace {

sigjmp_buf jump_target;

void jump_out() { siglongjmp(jump_target, 1); }
void call_and_jump_out() { call_hooked(4, 4, jump_out); }

uint64_t step_through_call(const std::function<bool(uint64_t)>& at_step) {
  return single_step([] { call_hooked(2, 2); }, at_step);
}

// The steps of a call that is known from an earlier one.
uint64_t count_steps_of_call() {
  const auto go_on = [](uint64_t) { return true; };
  step_through_call(go_on);
  return step_through_call(go_on);
}

// Filters of calls: none; one that leaves no call out, and one that leaves out all.
constexpr arctrace_shim_filter kFilters[] = {{0, 0, 0}, {0, 100, 0}, {1, 0, 0}};

TEST_CASE("left by a jump: a function with hooks") {
  for (size_t i = 0; i < 2 * std::size(kFilters); ++i) {
    const auto jump = i % 2 == 0 ? jump_out : call_and_jump_out;
    const arctrace_shim_filter& filter = kFilters[i / 2];
    CAPTURE(i);
    in_session(buffer_with(ARCTRACE_SCOPE_THREAD, 65536, 400), [&](TestSession& test) {
      if (i / 2 != 0) arctrace_shim_set_filter(&filter);
      const auto here = reinterpret_cast<uintptr_t>(&test);
      arctrace_shim_thread_start(here - (4u << 20), here + (64u << 10));
      call_hooked(1, 1, [&] {
        const uint64_t count = count_steps_of_call();
        volatile uint64_t at = 0;  // volatile, because it changes between set and jump
        while (at + 1 < count) {
          const uint64_t jumps_at = at + 1;
          at = jumps_at;
          if (sigsetjmp(jump_target, 1) == 0) {
            step_through_call([&](uint64_t step) {
              if (step == jumps_at) jump();
              return true;
            });
          }
          const writer::OpenFrames& open = writer::thread_local_state.state->open;
          call_hooked(3, 3, [&] {
            REQUIRE(open.depth == 2);
            REQUIRE(open.frames[0].key == 1);
            REQUIRE(open.frames[1].key == 3);
          });
          REQUIRE(open.depth == 1);
        }
      });
      check_at_rest(test);
      CHECK(writer::thread_local_state.state->open.depth == 0);
      const DecodedTrace trace = test.finish();
      CHECK(joined(trace.problems) == "");
      const ReplayedStack replayed = ReplayedStack::in_order_of_time(trace);
      CHECK(replayed.open().empty());
      CHECK(replayed.orphans().empty());
    });
  }
}

// Whether the last record in the thread's next block, which is not open yet, is of this
// type and complete.
bool has_begun_with(const TestSession& test, uint16_t type) {
  const writer::ExclusiveBlock& block = writer::thread_local_state.state->block;
  if (block.is_open || !block.is_opening()) return false;
  const std::byte* at = test.view().block(block.taken.index) + ARCTRACE_BLOCK_HEADER_SIZE;
  uint32_t last = ARCTRACE_FILL;
  for (uint32_t word0 = 0;; at += word0 & ARCTRACE_LENGTH_MASK) {
    word0 = *reinterpret_cast<const uint32_t*>(at);
    if (word0 == ARCTRACE_FILL) return last >> ARCTRACE_TYPE_SHIFT == type;
    last = word0;
  }
}

// Waits until a record can't tell any more how long after the block's base it was
// written.
void outlast_base() {
  const uint64_t base = writer::thread_local_state.state->block.base_ticks;
  while (writer::session_ticks() - base <= UINT32_MAX) usleep(10'000);
}

// The next call opens the block that the interrupted one began to open: a STACK that is
// there already is from before the handler's calls.
TEST_CASE("left by a jump: an entry that opens a block") {
  in_session(buffer_with(ARCTRACE_SCOPE_THREAD, 1024, 8000), [&](TestSession& test) {
    const auto here = reinterpret_cast<uintptr_t>(&test);
    arctrace_shim_thread_start(here - (4u << 20), here + (64u << 10));
    call_hooked(1, 1, [&] {
      const auto run = [&](const std::function<bool(uint64_t)>& at_step) {
        arctrace_flush();
        return single_step([] { call_hooked(2, 2); }, at_step);
      };
      run([](uint64_t) { return true; });  // makes the call known
      const writer::ExclusiveBlock& block = writer::thread_local_state.state->block;
      uint64_t first = 0;  // step at which it has the next block
      const uint64_t last = run([&](uint64_t step) {
        if (first == 0 && block.is_opening()) first = step;
        return !block.is_open;
      });
      volatile uint64_t at = first;  // volatile: they change between set and jump
      volatile uint64_t begun = 0;
      while (at < last) {
        const uint64_t jumps_at = at + 1;
        at = jumps_at;
        if (sigsetjmp(jump_target, 1) == 0) {
          run([&](uint64_t step) {
            if (step == jumps_at) call_and_jump_out();
            return true;
          });
        }
        const bool is_first = begun == 0;
        if (has_begun_with(test, ARCTRACE_TYPE_STACK)) begun = begun + 1;
        if (is_first && begun != 0) {
          outlast_base();
          if (sigsetjmp(jump_target, 1) == 0) {
            single_step([] { call_hooked(3, 3); },
                        [&](uint64_t) {
                          if (has_begun_with(test, ARCTRACE_TYPE_TIME)) jump_out();
                          return true;
                        });
          }
          REQUIRE(has_begun_with(test, ARCTRACE_TYPE_TIME));
        }
        call_hooked(3, 3);
        REQUIRE(writer::thread_local_state.state->open.depth == 1);
      }
      CHECK(begun >= 1);
    });
    check_at_rest(test);
    const DecodedTrace trace = test.finish();
    CHECK(joined(trace.problems) == "");
    CHECK(trace.of_type(ARCTRACE_TYPE_TIME).size() == 1);
    for (const DecodedBlock& block : trace.blocks) {
      CHECK(std::count_if(block.records.begin(), block.records.end(),
                          [](const DecodedRecord& record) {
                            return record.type == ARCTRACE_TYPE_STACK &&
                                   !record.in_progress;
                          }) <= 1);
    }
    const ReplayedStack replayed =
        ReplayedStack::in_order_of_time(trace, ReplayedStack::Stacks::kChecked);
    CHECK(replayed.open().empty());
    CHECK(replayed.orphans().empty());
  });
}

// The second call has the same frame as the first one had.
TEST_CASE("left by a jump: an event, and another by the same frame") {
  for (const arctrace_scope scope : kScopes) {
    CAPTURE(scope);
    in_session(buffer_with(scope, 4096, 2000), [&](TestSession& test) {
      const auto here = reinterpret_cast<uintptr_t>(&scope);
      arctrace_shim_thread_start(here - (4u << 20), here + (64u << 10));
      volatile uint64_t number = 0;
      volatile bool is_in_first = false;
      const auto write_twice = [&] {
        if (sigsetjmp(jump_target, 1) == 0) {
          is_in_first = true;
          write_checked(1, number);
        }
        is_in_first = false;
        write_checked(2, number);
      };
      write_twice();
      const uint64_t count =
          single_step([&] { write_checked(1, 1000000); }, [](uint64_t) { return true; });
      for (uint64_t at = 0; at < count; ++at) {
        number = number + 1;
        uint64_t left = at;
        single_step(write_twice, [&](uint64_t) {
          if (is_in_first && left-- == 0) jump_out();
          return bool{is_in_first} || left == at;
        });
        REQUIRE(writer::thread_local_state.guard == 0);
      }
      check_at_rest(test);
      const DecodedTrace trace = test.finish();
      CHECK(joined(trace.problems) == "");
      CHECK(numbers_of(trace, 2).size() == number + 1);
    });
  }
}

TEST_CASE("left by a jump: calls of every kind") {
  for (const arctrace_scope scope : kScopes) {
    for (const WriterAction& outer : all_writer_actions()) {
      CAPTURE(scope);
      CAPTURE(outer.name);
      in_session(buffer_with(scope, 1024, 2000), [&](TestSession& test) {
        // The bounds are known, as with the shim: a jump is recognised only by the
        // stack's bounds.
        const auto here = reinterpret_cast<uintptr_t>(&scope);
        arctrace_shim_thread_start(here - (4u << 20), here + (64u << 10));
        volatile uint64_t number = 0;
        outer.run(1, 1000000);
        const uint64_t count =
            single_step([&] { outer.run(1, 0); }, [](uint64_t) { return true; });
        for (const uint64_t at : cuts(count, 60)) {
          number = number + 1;
          if (sigsetjmp(jump_target, 1) == 0) {
            single_step([&] { outer.run(1, number); },
                        [at](uint64_t step) {
                          if (step == at) siglongjmp(jump_target, 1);
                          return true;
                        });
          }
          write_checked(2, number);
        }
        // A record that is never committed stays reserved, and few can be.
        const uint64_t places_in_use = outer.name == "reserve" ? ARCTRACE_HELD_COUNT : 0;
        check_at_rest(test, places_in_use);
        // This can go on for ever.
        const uint32_t owned = test.blocks_in(ARCTRACE_PHASE_OWNED);
        CHECK(owned <= 1);
        const DecodedTrace trace = test.finish();
        CHECK(joined(trace.problems) == "");
        CHECK(numbers_of(trace, 2).size() == number);
        CHECK(trace.torn() <= number);
        CHECK(trace.lost() <= (places_in_use == 0 ? 0 : number));
      });
    }
  }
}

// In overwrite mode blocks of the chain, where a handler's own calls are, are overwritten
// before the thread's blocks: a STACK lists frames that are still open.
TEST_CASE("left by a jump: in overwrite mode a STACK tells what the handler called") {
  recorder::BufferOptions options = buffer_with(ARCTRACE_SCOPE_THREAD, 4096, 400);
  options.mode = ARCTRACE_MODE_OVERWRITE;
  in_session(options, [&](TestSession& test) {
    const auto here = reinterpret_cast<uintptr_t>(&test);
    arctrace_shim_thread_start(here - (4u << 20), here + (64u << 10));
    call_hooked(1, 1, [&] {
      const uint64_t count = count_steps_of_call();
      for (const uint64_t at : cuts(count, 150)) {
        if (sigsetjmp(jump_target, 1) == 0) {
          step_through_call([at](uint64_t step) {
            if (step == at) call_and_jump_out();
            return true;
          });
        }
        call_hooked(3, 3);
      }
    });
    DecodedTrace trace = test.finish();
    CHECK(joined(trace.problems) == "");
    // Removes everything that is in the chain.
    std::erase_if(trace.blocks,
                  [](const DecodedBlock& block) { return !block.is_compact(); });
    CHECK(trace.blocks.size() > 1);
    const ReplayedStack replayed =
        ReplayedStack::in_order_of_time(trace, ReplayedStack::Stacks::kTaken);
    CHECK(replayed.open().empty());
    CHECK(replayed.orphans().empty());
  });
}

// The thread's next call completes an interrupted change of the table of coroutines'
// stacks.
TEST_CASE("left by a jump: a coroutine's stack that is being made") {
  constexpr uintptr_t kLow = 0x7000'0000;
  constexpr uintptr_t kSize = 0x1000;
  in_session(buffer_with(ARCTRACE_SCOPE_THREAD, 4096, 400), [&](TestSession& test) {
    const auto here = reinterpret_cast<uintptr_t>(&test);
    arctrace_shim_thread_start(here - (4u << 20), here + (64u << 10));
    const auto make = [] { arctrace_shim_makes_stack(kLow, kLow + kSize); };
    make();
    const uint64_t count = single_step(make, [](uint64_t) { return true; });
    volatile uint64_t amid_changes = 0;
    for (const uint64_t at : cuts(count, 400)) {
      if (sigsetjmp(jump_target, 1) == 0) {
        single_step(make, [at](uint64_t step) {
          if (step == at) jump_out();
          return true;
        });
      }
      if (writer::find_coroutine_stack(kLow + 8).found ==
          writer::CoroutineStack::Found::kBusy) {
        amid_changes = amid_changes + 1;
      }
      arctrace_shim_makes_stack(kLow + kSize, kLow + 2 * kSize);
      REQUIRE(writer::find_coroutine_stack(kLow + kSize + 8).found ==
              writer::CoroutineStack::Found::kYes);
      make();
      REQUIRE(writer::find_coroutine_stack(kLow + 8).found ==
              writer::CoroutineStack::Found::kYes);
    }
    CHECK(amid_changes > 0);
    check_at_rest(test);
  });
}

}  // namespace
}  // namespace arctrace::testing
