// A writer is interrupted after every single instruction of its calls by a signal
// handler that itself writes, forks, or jumps away.
#include <arctrace/arctrace.h>
#include <doctest/doctest.h>
#include <unistd.h>

#include <algorithm>
#include <csetjmp>
#include <csignal>
#include <map>
#include <string>

#include "src/api/shim_interface.h"
#include "src/base/memory.hpp"
#include "src/calls/call_records.hpp"
#include "src/writer/record.hpp"
#include "tests/stress/cuts.hpp"
#include "tests/support/child.hpp"
#include "tests/support/hooked_function.hpp"
#include "tests/support/lock_call.hpp"
#include "tests/support/replayed_stack.hpp"
#include "tests/support/reported_function.hpp"
#include "tests/support/single_step.hpp"
#include "tests/support/skip.hpp"

namespace arctrace::testing {
namespace {

// A call of the API, and how many records it attempts.
struct Action {
  std::string name;
  uint32_t records;
  void (*run)(uint32_t event, uint64_t number);
};

void call_function(uint32_t event, uint64_t number) {
  arctrace_enter(number * 10 + event);
  arctrace_exit(number * 10 + event);
}

void call_hooked_functions(uint32_t event, uint64_t number) {
  call_hooked(number * 10 + event, 1 + event,
              [=] { call_hooked(number * 10 + event, 10 + event); });
}

void call_lock_functions(uint32_t event, uint64_t number) {
  const uint64_t key = number * 10 + event;
  call_with_locks(key, 1, [=] { call_with_locks(key, 2, [] {}); });
}

#if defined(__x86_64__)
void call_reported_functions(uint32_t event, uint64_t number) {
  call_reported(number * 10 + event,
                [=] { call_reported(number * 10 + event + 2, [] {}); });
}
#endif

void write_to_new_block(uint32_t event, uint64_t number) {
  arctrace_flush();
  write_checked(event, number);
}

void define_and_use(uint32_t event, uint64_t number) {
  arctrace_instant(arctrace_define_name("a name"));
  write_checked(event, number);
}

const Action kActions[] = {{"write", 1, write_checked},
                           {"reserve", 1, reserve_checked},
                           {"call", 2, call_function},
                           {"hooked", 4, call_hooked_functions},
                           {"locks", 4, call_lock_functions},
#if defined(__x86_64__)
                           {"reported", 4, call_reported_functions},
#endif
                           {"new block", 1, write_to_new_block},
                           {"define", 2, define_and_use}};

struct Interrupted {
  uint64_t calls = 0;
  uint64_t handlers = 0;  // that have run
};

using Call = std::function<void(uint64_t number)>;

// Runs `call(n)` again and again, with `handler(n)` as a signal handler each time at
// another of its instructions, and `after(n)` after each call that was interrupted.
Interrupted interrupt_everywhere(
    uint64_t most, const Call& call, const Call& handler,
    const Call& after = [](uint64_t) {}) {
  Interrupted done;
  call(done.calls++);  // what only a first call does
  const uint64_t count =
      single_step([&] { call(done.calls++); }, [](uint64_t) { return true; });
  for (const uint64_t at : cuts(count, most)) {
    const uint64_t number = done.calls++;
    single_step([&] { call(number); },
                [&](uint64_t step) {
                  if (step != at) return true;
                  ++done.handlers;
                  handler(number);
                  return false;
                });
    after(number);
  }
  CHECK(done.handlers * 2 > done.calls);
  return done;
}

// That the thread is out of the writer and holds nothing.
void check_at_rest(const TestSession& test, uint64_t held_places = 0) {
  CHECK(thread_local_state.guard == 0);
  CHECK(thread_local_state.nesting == 0);
  const arctrace_writer_slot& slot =
      test.view().slot(thread_local_state.state->slot.index);
  for (const uint32_t name : slot.active) CHECK(name == 0);
  const auto held = std::count_if(std::begin(slot.held), std::end(slot.held),
                                  [](uint32_t name) { return name != 0; });
  CHECK(static_cast<uint64_t>(held) <= held_places);
}

// Both events are whole, lock calls have their locks, and everything else is there.
void check_trace(const DecodedTrace& trace, uint64_t attempts) {
  for (const DecodedRecord& record : trace.of_type(ARCTRACE_TYPE_ENTER)) {
    for (uint32_t i = 1; sizeof(arctrace_lock_word) * i < record.body.size(); ++i) {
      REQUIRE(record.u64(sizeof(arctrace_lock_word) * i) == lock_of(record.u64(0), i));
    }
  }
  CHECK(joined(trace.problems) == "");
  CHECK(trace.torn() == 0);
  CHECK(trace.lost() == 0);
  CHECK(trace.written() == attempts);
  numbers_of(trace, 1);
  numbers_of(trace, 2);
}

// In a process of its own that has joined.
void in_session(const BufferOptions& options,
                const std::function<void(TestSession&)>& body) {
  if (!can_single_step()) return testing::skip_case("no process may be stepped here");
  TestSession test(options);
  CHECK_CHILD([&] {
    REQUIRE(arctrace_attach(test.path().c_str()) == 0);
    start_hooked_functions();
    start_lock_calls();
    start_reported_functions();
    body(test);
  });
}

TEST_CASE("interrupted anywhere: by calls of every kind") {
  for (const arctrace_scope scope : kScopes) {
    for (const Action& outer : kActions) {
      for (const Action& inner : kActions) {
        CAPTURE(scope);
        CAPTURE(outer.name);
        CAPTURE(inner.name);
        in_session(buffer_with(scope, 1024, 2000), [&](TestSession& test) {
          const Interrupted done = interrupt_everywhere(
              60, [&](uint64_t n) { outer.run(1, n); },
              [&](uint64_t n) { inner.run(2, n); });
          check_at_rest(test);
          CHECK(thread_local_state.state->open.depth == 0);
          check_trace(test.finish(),
                      done.calls * outer.records + done.handlers * inner.records);
        });
      }
    }
  }
}

TEST_CASE("interrupted anywhere: as the thread gets own blocks, or gives them up") {
  for (const bool gets : {true, false}) {
    CAPTURE(gets);
    in_session(buffer_with(ARCTRACE_SCOPE_ADAPTIVE, 1024, 2000), [&](TestSession& test) {
      const auto prepare = [gets] {
        ThreadState& state = *thread_local_state.state;
        if (state.has_own_blocks) {
          session.ticks_per_second = 1;
          state.block.base_ticks -= uint64_t{1} << 33;
          arctrace_instant(1);  // back in the chain
        }
        gets ? prepare_own_blocks() : prepare_chain();
      };
      arctrace_instant(1);
      uint64_t handlers = 0;
      uint64_t calls = 0;
      prepare();
      const uint64_t count =
          single_step([&] { write_checked(1, calls++); }, [](uint64_t) { return true; });
      for (const uint64_t at : cuts(count, 200)) {
        prepare();
        single_step([&] { write_checked(1, calls++); },
                    [&](uint64_t step) {
                      if (step != at) return true;
                      call_function(2, handlers);
                      write_checked(2, handlers++);
                      return false;
                    });
      }
      check_at_rest(test);
      CHECK(thread_local_state.state->open.depth == 0);
      const DecodedTrace trace = test.finish();
      CHECK(joined(trace.problems) == "");
      CHECK(trace.torn() == 0);
      CHECK(trace.lost() == 0);
      CHECK(numbers_of(trace, 1) == all_below(calls));
      CHECK(numbers_of(trace, 2) == all_below(handlers));
    });
  }
}

TEST_CASE("interrupted anywhere: at all instructions of one call") {
  for (const arctrace_scope scope : kScopes) {
    for (const Action& outer : kActions) {
      CAPTURE(scope);
      CAPTURE(outer.name);
      in_session(buffer_with(scope, 4096, 4000), [&](TestSession& test) {
        uint64_t handlers = 0;
        single_step([&] { outer.run(1, 1); },
                    [&](uint64_t) {
                      if (handlers < 1000) {
                        ++handlers;
                        call_function(2, handlers);
                        write_checked(2, handlers);
                      }
                      return true;
                    });
        check_at_rest(test);
        CHECK(thread_local_state.state->open.depth == 0);
        check_trace(test.finish(), outer.records + 3 * handlers);
      });
    }
  }
}

// A handler's call uses the entry that a pending call is being stored in, and the next
// one finds it there.
TEST_CASE("interrupted anywhere: at all instructions of a stub's call, by two others") {
  for (const arctrace_scope scope : kScopes) {
    CAPTURE(scope);
    in_session(buffer_with(scope, 4096, 8000), [&](TestSession& test) {
      uint64_t calls = 0;
      uint64_t handlers = 0;
      const auto call = [&] { call_with_locks(++calls * 10 + 1, 1, [] {}); };
      call();  // what only a first call does
      const uint64_t count = single_step(call, [](uint64_t) { return true; });
      for (uint64_t gap = 1; gap < 4; ++gap) {
        for (uint64_t at = 0; at < count; ++at) {
          single_step(call, [&](uint64_t step) {
            if (step != at && step != at + gap) return true;
            call_with_locks(++handlers * 10 + 2, 1, [] {});
            return step == at;
          });
        }
      }
      check_at_rest(test);
      CHECK(thread_local_state.state->open.depth == 0);
      check_trace(test.finish(), 2 * calls + 2 * handlers);
    });
  }
}

void* reserved;  // by a handler, committed after it

TEST_CASE("interrupted anywhere: what a handler reserved can be committed after it") {
  for (const arctrace_scope scope : kScopes) {
    for (const Action& outer : kActions) {
      CAPTURE(scope);
      CAPTURE(outer.name);
      in_session(buffer_with(scope, 1024, 2000), [&](TestSession& test) {
        const Interrupted done = interrupt_everywhere(
            60, [&](uint64_t n) { outer.run(1, n); },
            [&](uint64_t) { reserved = arctrace_reserve(2, sizeof(Checked)); },
            [&](uint64_t n) {
              if (reserved == nullptr) return;  // this run had fewer instructions
              *static_cast<Checked*>(reserved) = checked(n);
              arctrace_commit(reserved);
              reserved = nullptr;
            });
        check_at_rest(test);
        check_trace(test.finish(), done.calls * outer.records + done.handlers);
      });
    }
  }
}

TEST_CASE("interrupted anywhere: the frames stay those of the calls") {
  in_session(buffer_with(ARCTRACE_SCOPE_THREAD, 1024, 2000), [](TestSession& test) {
    const Interrupted done = interrupt_everywhere(
        200, [](uint64_t n) { arctrace_enter(100 + n); },
        [](uint64_t n) { call_function(7, n); });
    const ThreadState& state = *thread_local_state.state;
    CHECK(state.open.depth == done.calls);
    for (uint64_t i = 0; i < done.calls; ++i) CHECK(state.open.frames[i].key == 100 + i);
    check_at_rest(test);
  });
}

// The child, too, goes on with what it interrupted. If that was a call of ours, the child
// is recorded no more.
TEST_CASE("interrupted anywhere: by a handler that forks") {
  for (const arctrace_scope scope : kScopes) {
    CAPTURE(scope);
    in_session(buffer_with(scope, 2048, 4000), [](TestSession& test) {
      const int parent = getpid();
      const Interrupted done = interrupt_everywhere(
          20, [](uint64_t n) { write_checked(1, n); },
          [](uint64_t n) {
            const int pid = fork();
            if (pid != 0) CHECK(wait_for_child(pid) == "");
            write_checked(pid != 0 ? 2 : 3, n);
          },
          [parent](uint64_t n) {
            if (getpid() == parent) return;
            write_checked(4, n);
            _exit(thread_local_state.guard == 0 ? 0 : 1);
          });
      check_at_rest(test);
      const DecodedTrace trace = test.finish();
      CHECK(joined(trace.problems) == "");
      CHECK(numbers_of(trace, 2).size() == done.handlers);
      CHECK(numbers_of(trace, 3) == numbers_of(trace, 4));
    });
  }
}

// The child may also just go on: with the parent's record, which then is finished twice
// as one and the same, or with one of its own. The blocks have room, and are young enough
// to hold its time.
TEST_CASE("interrupted anywhere: by a handler that forks, and its child just goes on") {
  for (const Action& outer : kActions) {
    if (outer.name == "define" || outer.name == "new block") continue;
    CAPTURE(outer.name);
    in_session(buffer_with(ARCTRACE_SCOPE_THREAD, 4096, 2000), [&](TestSession& test) {
      const int parent = getpid();
      const Interrupted done = interrupt_everywhere(
          200, [&](uint64_t n) { outer.run(1, n); },
          [](uint64_t) {
            if (const int pid = fork(); pid != 0) CHECK(wait_for_child(pid) == "");
          },
          [parent](uint64_t n) {
            if (getpid() != parent) _exit(0);
            write_to_new_block(2, n);
          });
      check_at_rest(test);
      const DecodedTrace trace = test.finish();
      CHECK(joined(trace.problems) == "");
      CHECK(trace.torn() == 0);
      CHECK(trace.written() >= done.calls * outer.records);
    });
  }
}

// Both handlers' calls have one slot on the stack, and what the first leaves of its
// frame must not be taken for the interrupted call's by the second.
TEST_CASE(
    "interrupted anywhere: a function with hooks, twice within a few instructions") {
  constexpr uint64_t kBetween = 5;
  in_session(buffer_with(ARCTRACE_SCOPE_THREAD, 65536, 400), [](TestSession& test) {
    uint64_t calls = 1;
    call_hooked(1, 1, [&] {
      const auto run = [&](const std::function<bool(uint64_t)>& at_step) {
        ++calls;
        return single_step([] { call_hooked(2, 2); }, at_step);
      };
      run([](uint64_t) { return true; });  // learns the call
      const uint64_t slow = slow_hook_calls();
      const uint64_t count = run([](uint64_t) { return true; });
      REQUIRE(slow_hook_calls() == slow);
      for (uint64_t first = 1; first < count; ++first) {
        run([&](uint64_t step) {
          if (step == first || step == first + kBetween) {
            ++calls;
            call_hooked(3, 3);
          }
          return step < first + kBetween;
        });
        REQUIRE(thread_local_state.state->open.depth == 1);
      }
    });
    check_at_rest(test);
    CHECK(thread_local_state.state->open.depth == 0);
    check_trace(test.finish(), calls * 2);
  });
}

// A library call with its number as its argument, and an event in it.
__attribute__((noinline)) void call_with_argument(uint32_t event, uint64_t number) {
  const uintptr_t slot = event;  // where its return address stood
  const StubCall call{&slot, 0, 0};
  const uint64_t key = number * 10 + event;
  ArgsBody body;
  const arctrace_args_body fixed{.count = 1};
  const arctrace_arg_head head{
      .kind = ARCTRACE_VALUE_UNSIGNED, .argument = 1, .size = sizeof key};
  copy_bytes(body.bytes, &fixed, sizeof fixed);
  copy_bytes(body.bytes + sizeof fixed, &head, sizeof head);
  copy_bytes(body.bytes + sizeof fixed + sizeof head, &key, sizeof key);
  body.size = sizeof fixed + sizeof head + sizeof key;
  enter_slow(key, call.described(), call.here(), &body);
  write_checked(event, number);
  exit_slow(key, call.here() + sizeof slot, call.here(), nullptr);
}

TEST_CASE("interrupted anywhere: calls that wait keep their arguments") {
  in_session(buffer_with(ARCTRACE_SCOPE_THREAD, 1024, 4000), [](TestSession& test) {
    const arctrace_shim_filter filter = {0, 0, 1'000'000'000'000};
    arctrace_shim_set_filter(&filter);
    const Interrupted done = interrupt_everywhere(
        400, [](uint64_t n) { call_with_argument(1, n); },
        [](uint64_t n) { call_with_argument(2, n); });
    check_at_rest(test, 1);  // the record of the calls that wait
    CHECK(thread_local_state.state->open.depth == 0);
    const DecodedTrace trace = test.finish();
    check_trace(trace, (done.calls + done.handlers) * 4);
    std::map<uint64_t, uint64_t> keys_by_ticks;
    for (const DecodedRecord& record : trace.of_type(ARCTRACE_TYPE_ENTER)) {
      keys_by_ticks[record.ticks] = record.u64(0);
    }
    const auto arguments = trace.of_type(ARCTRACE_TYPE_ARGUMENTS);
    CHECK(arguments.size() == done.calls + done.handlers);
    for (const DecodedRecord& record : arguments) {
      CHECK(record.u64(8) == keys_by_ticks[record.ticks]);
    }
  });
}

TEST_CASE("interrupted anywhere: calls that wait keep their locks") {
  in_session(buffer_with(ARCTRACE_SCOPE_THREAD, 1024, 4000), [](TestSession& test) {
    const arctrace_shim_filter filter = {0, 0, 1'000'000'000'000};
    arctrace_shim_set_filter(&filter);
    const auto call = [](uint32_t event, uint64_t number) {
      call_with_locks(number * 10 + event, event, [=] { write_checked(event, number); });
    };
    const Interrupted done = interrupt_everywhere(
        400, [&](uint64_t n) { call(1, n); }, [&](uint64_t n) { call(2, n); });
    check_at_rest(test, 1);  // the record of the calls that wait
    CHECK(thread_local_state.state->open.depth == 0);
    const DecodedTrace trace = test.finish();
    check_trace(trace, (done.calls + done.handlers) * 3);
    const auto entries = trace.of_type(ARCTRACE_TYPE_ENTER);
    CHECK(entries.size() == done.calls + done.handlers);
    for (const DecodedRecord& record : entries) {
      CHECK(record.body.size() == 8 + 8 * (record.u64(0) % 10));
    }
    CHECK(trace.of_type(ARCTRACE_TYPE_ARGUMENTS).empty());
  });
}

sigjmp_buf jump_target;

void jump_out() { siglongjmp(jump_target, 1); }
void call_and_jump_out() { call_hooked(4, 4, jump_out); }

TEST_CASE("interrupted anywhere: a function with hooks, by a handler that jumps out") {
  for (const auto jump : {jump_out, call_and_jump_out}) {
    in_session(buffer_with(ARCTRACE_SCOPE_THREAD, 65536, 400), [&](TestSession& test) {
      const auto here = reinterpret_cast<uintptr_t>(&test);
      arctrace_shim_thread_start(here - (4u << 20), here + (64u << 10));
      call_hooked(1, 1, [&] {
        const auto run = [&](const std::function<bool(uint64_t)>& at_step) {
          return single_step([] { call_hooked(2, 2); }, at_step);
        };
        run([](uint64_t) { return true; });  // learns the call
        const uint64_t count = run([](uint64_t) { return true; });
        volatile uint64_t at = 0;  // volatile, because it changes between set and jump
        while (at + 1 < count) {
          const uint64_t jumps_at = at + 1;
          at = jumps_at;
          if (sigsetjmp(jump_target, 1) == 0) {
            run([&](uint64_t step) {
              if (step == jumps_at) jump();
              return true;
            });
          }
          const OpenFrames& open = thread_local_state.state->open;
          call_hooked(3, 3, [&] {
            REQUIRE(open.depth == 2);
            REQUIRE(open.frames[0].key == 1);
            REQUIRE(open.frames[1].key == 3);
          });
          REQUIRE(open.depth == 1);
        }
      });
      check_at_rest(test);
      CHECK(thread_local_state.state->open.depth == 0);
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
  const ExclusiveBlock& block = thread_local_state.state->block;
  if (block.is_open || !block.is_opening()) return false;
  const std::byte* at = test.view().block(block.taken.index) + ARCTRACE_BLOCK_HEADER_SIZE;
  uint32_t last = ARCTRACE_FILL;
  for (uint32_t word0 = 0;; at += word0 & ARCTRACE_LENGTH_MASK) {
    word0 = *reinterpret_cast<const uint32_t*>(at);
    if (word0 == ARCTRACE_FILL) return last >> ARCTRACE_TYPE_SHIFT == type;
    last = word0;
  }
}

// Until a record can't say any more how long after the block's base it was written.
void outlast_base() {
  const uint64_t base = thread_local_state.state->block.base_ticks;
  while (session_ticks() - base <= UINT32_MAX) usleep(10'000);
}

// The next call opens the block that the interrupted one began to open: a STACK that is
// there already is of the time before the handler's calls.
TEST_CASE("interrupted anywhere: an entry that opens a block, by a handler's jump") {
  in_session(buffer_with(ARCTRACE_SCOPE_THREAD, 1024, 8000), [&](TestSession& test) {
    const auto here = reinterpret_cast<uintptr_t>(&test);
    arctrace_shim_thread_start(here - (4u << 20), here + (64u << 10));
    call_hooked(1, 1, [&] {
      const auto run = [&](const std::function<bool(uint64_t)>& at_step) {
        arctrace_flush();
        return single_step([] { call_hooked(2, 2); }, at_step);
      };
      run([](uint64_t) { return true; });  // learns the call
      const ExclusiveBlock& block = thread_local_state.state->block;
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
        REQUIRE(thread_local_state.state->open.depth == 1);
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

// The second call has the frame that the first one had.
TEST_CASE("interrupted anywhere: a jump out of an event, and another by the same frame") {
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
        REQUIRE(thread_local_state.guard == 0);
      }
      check_at_rest(test);
      const DecodedTrace trace = test.finish();
      CHECK(joined(trace.problems) == "");
      CHECK(numbers_of(trace, 2).size() == number + 1);
    });
  }
}

TEST_CASE("interrupted anywhere: by a handler that jumps out of the writer") {
  for (const arctrace_scope scope : kScopes) {
    for (const Action& outer : kActions) {
      CAPTURE(scope);
      CAPTURE(outer.name);
      in_session(buffer_with(scope, 1024, 2000), [&](TestSession& test) {
        // As the shim does it: a jump is recognised only by the stack's bounds.
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
        // Room that is never committed stays reserved, and there are few.
        const uint64_t held_places = outer.name == "reserve" ? ARCTRACE_HELD_COUNT : 0;
        check_at_rest(test, held_places);
        // It can go on like that for ever.
        const uint32_t owned = test.blocks_in(ARCTRACE_PHASE_OWNED);
        CHECK(owned <= 1);
        const DecodedTrace trace = test.finish();
        CHECK(joined(trace.problems) == "");
        CHECK(numbers_of(trace, 2).size() == number);
        CHECK(trace.torn() <= number);
        CHECK(trace.lost() <= (held_places == 0 ? 0 : number));
      });
    }
  }
}

}  // namespace
}  // namespace arctrace::testing
