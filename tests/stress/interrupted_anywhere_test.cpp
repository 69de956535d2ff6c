// A writer is interrupted after every single instruction of its calls by a signal
// handler that itself writes or forks.
#include <arctrace/arctrace.h>
#include <doctest/doctest.h>
#include <unistd.h>

#include <csignal>
#include <functional>
#include <map>

#include "src/api/shim_interface.h"
#include "src/base/memory.hpp"
#include "src/calls/call_records.hpp"
#include "src/process/session.hpp"
#include "src/writer/record.hpp"
#include "tests/stress/cuts.hpp"
#include "tests/stress/writer_calls.hpp"
#include "tests/support/child.hpp"
#include "tests/support/hooked_function.hpp"
#include "tests/support/lock_call.hpp"
#include "tests/support/single_step.hpp"

namespace arctrace::testing {
namespace {

struct Interrupted {
  uint64_t calls = 0;
  uint64_t handlers = 0;  // handlers that have run
};

using Call = std::function<void(uint64_t number)>;

// Runs `call(n)` again and again, with `handler(n)` as a signal handler each time at
// another of its instructions, and `after(n)` after each call that was interrupted.
Interrupted interrupt_everywhere(
    uint64_t most, const Call& call, const Call& handler,
    const Call& after = [](uint64_t) {}) {
  Interrupted done;
  call(done.calls++);  // does the work of a first call
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

TEST_CASE("interrupted anywhere: by calls of every kind") {
  for (const arctrace_scope scope : kScopes) {
    for (const WriterAction& outer : all_writer_actions()) {
      for (const WriterAction& inner : all_writer_actions()) {
        CAPTURE(scope);
        CAPTURE(outer.name);
        CAPTURE(inner.name);
        in_session(buffer_with(scope, 1024, 2000), [&](TestSession& test) {
          const Interrupted done = interrupt_everywhere(
              60, [&](uint64_t n) { outer.run(1, n); },
              [&](uint64_t n) { inner.run(2, n); });
          check_at_rest(test);
          CHECK(writer::thread_local_state.state->open.depth == 0);
          check_trace(test.finish(),
                      done.calls * outer.records + done.handlers * inner.records);
        });
      }
    }
  }
}

// A filter that leaves no call out: they take the path of filtered calls.
constexpr arctrace_shim_filter kFilter = {0, 100, 0};

TEST_CASE("interrupted anywhere: by calls of every kind, with a filter") {
  for (const arctrace_scope scope : kScopes) {
    for (const WriterAction& outer : all_writer_actions()) {
      for (const WriterAction& inner : {all_writer_actions()[0], outer}) {
        CAPTURE(scope);
        CAPTURE(outer.name);
        CAPTURE(inner.name);
        in_session(buffer_with(scope, 1024, 2000), [&](TestSession& test) {
          arctrace_shim_set_filter(&kFilter);
          const Interrupted done = interrupt_everywhere(
              200, [&](uint64_t n) { outer.run(1, n); },
              [&](uint64_t n) { inner.run(2, n); });
          check_at_rest(test);
          CHECK(writer::thread_local_state.state->open.depth == 0);
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
        writer::ThreadState& state = *writer::thread_local_state.state;
        if (state.has_own_blocks) {
          writer::session.ticks_per_second = 1;
          state.block.base_ticks -= uint64_t{1} << 33;
          arctrace_instant(1);  // puts the thread back into the chain
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
      CHECK(writer::thread_local_state.state->open.depth == 0);
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
    for (const WriterAction& outer : all_writer_actions()) {
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
        CHECK(writer::thread_local_state.state->open.depth == 0);
        check_trace(test.finish(), outer.records + 3 * handlers);
      });
    }
  }
}

// A handler's call uses the entry that a pending call is being stored in, and the next
// call finds the handler's there.
TEST_CASE("interrupted anywhere: at all instructions of a stub's call, by two others") {
  for (const arctrace_scope scope : kScopes) {
    CAPTURE(scope);
    in_session(buffer_with(scope, 4096, 8000), [&](TestSession& test) {
      uint64_t calls = 0;
      uint64_t handlers = 0;
      const auto call = [&] { call_with_locks(++calls * 10 + 1, 1, [] {}); };
      call();  // does the work of a first call
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
      CHECK(writer::thread_local_state.state->open.depth == 0);
      check_trace(test.finish(), 2 * calls + 2 * handlers);
    });
  }
}

void* reserved;  // a handler reserves it, the test commits it afterwards

TEST_CASE("interrupted anywhere: what a handler reserved can be committed after it") {
  for (const arctrace_scope scope : kScopes) {
    for (const WriterAction& outer : all_writer_actions()) {
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
    const writer::ThreadState& state = *writer::thread_local_state.state;
    CHECK(state.open.depth == done.calls);
    for (uint64_t i = 0; i < done.calls; ++i) CHECK(state.open.frames[i].key == 100 + i);
    check_at_rest(test);
  });
}

// The child, too, continues with what it interrupted. If that was a call of ours, the
// child is not recorded any more.
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
            _exit(writer::thread_local_state.guard == 0 ? 0 : 1);
          });
      check_at_rest(test);
      const DecodedTrace trace = test.finish();
      CHECK(joined(trace.problems) == "");
      CHECK(numbers_of(trace, 2).size() == done.handlers);
      CHECK(numbers_of(trace, 3) == numbers_of(trace, 4));
    });
  }
}

// The child may also just continue: with the parent's record, which then is finished
// twice, alike both times, or with one of its own. The blocks have space, and are young
// enough for its time.
TEST_CASE("interrupted anywhere: by a handler that forks, and its child just goes on") {
  const auto actions = all_writer_actions();
  for (size_t i = 0; i < 2 * actions.size(); ++i) {
    const WriterAction& outer = actions[i / 2];
    const bool is_filtered = i % 2 != 0;
    if (outer.name == "define" || outer.name == "new block") continue;
    CAPTURE(outer.name);
    CAPTURE(is_filtered);
    in_session(buffer_with(ARCTRACE_SCOPE_THREAD, 4096, 2000), [&](TestSession& test) {
      if (is_filtered) arctrace_shim_set_filter(&kFilter);
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

// Both handlers' calls have one slot on the stack, and the second must not take the
// remains of the first one's frame for the interrupted call's.
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
      run([](uint64_t) { return true; });  // makes the call known
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
        REQUIRE(writer::thread_local_state.state->open.depth == 1);
      }
    });
    check_at_rest(test);
    CHECK(writer::thread_local_state.state->open.depth == 0);
    check_trace(test.finish(), calls * 2);
  });
}

// A library call with its number as its argument, and an event in it.
__attribute__((noinline)) void call_with_argument(uint32_t event, uint64_t number) {
  const uintptr_t slot = event;  // where its return address stood
  const writer::StubCall call{&slot, 0, 0};
  const uint64_t key = number * 10 + event;
  writer::ArgsBody body;
  const arctrace_args_body fixed{.count = 1};
  const arctrace_arg_head head{
      .kind = ARCTRACE_VALUE_UNSIGNED, .argument = 1, .size = sizeof key};
  copy_bytes(body.bytes, &fixed, sizeof fixed);
  copy_bytes(body.bytes + sizeof fixed, &head, sizeof head);
  copy_bytes(body.bytes + sizeof fixed + sizeof head, &key, sizeof key);
  body.size = sizeof fixed + sizeof head + sizeof key;
  writer::enter_slow(key, call.described(), call.here(), &body);
  write_checked(event, number);
  writer::exit_slow(key, call.here() + sizeof slot, call.here(), nullptr);
}

TEST_CASE("interrupted anywhere: calls that wait keep their arguments") {
  in_session(buffer_with(ARCTRACE_SCOPE_THREAD, 1024, 4000), [](TestSession& test) {
    const arctrace_shim_filter filter = {0, 0, 1'000'000'000'000};
    arctrace_shim_set_filter(&filter);
    const Interrupted done = interrupt_everywhere(
        400, [](uint64_t n) { call_with_argument(1, n); },
        [](uint64_t n) { call_with_argument(2, n); });
    check_at_rest(test, 1);  // the record of the calls that wait
    CHECK(writer::thread_local_state.state->open.depth == 0);
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
    CHECK(writer::thread_local_state.state->open.depth == 0);
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

}  // namespace
}  // namespace arctrace::testing
