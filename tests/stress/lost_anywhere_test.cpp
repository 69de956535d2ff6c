// A writer is interrupted after every single instruction of its calls by a signal handler
// that loses records, after earlier ones were written: there is no space for them, or
// functions are switched off.
#include <arctrace/arctrace.h>
#include <doctest/doctest.h>

#include <functional>
#include <string>

#include "src/api/shim_interface.h"
#include "src/recorder/buffer/recording_control.hpp"
#include "src/writer/thread_state.hpp"
#include "tests/stress/cuts.hpp"
#include "tests/support/child.hpp"
#include "tests/support/full_buffer.hpp"
#include "tests/support/hooked_function.hpp"
#include "tests/support/replayed_stack.hpp"
#include "tests/support/single_step.hpp"
#include "tests/support/skip.hpp"

namespace arctrace::testing {
namespace {

// What a handler loses: the end of a call, or a whole call. Then there is space again,
// and it makes another call. Or functions are off when its only call ends.
enum class Loses : uint8_t { kExit, kCall, kExitWhileOff };

void call_that_ends_while_off(TestSession& test) {
  const uint32_t all = IpcAtomics::load_relaxed(test.view().control().gate);
  call_hooked(7, 3, [&] { recorder::set_gate(test.view(), 0); });
  recorder::set_gate(test.view(), all);
}

void handle(TestSession& test, Loses loses) {
  if (loses == Loses::kExitWhileOff) return call_that_ends_while_off(test);
  if (loses == Loses::kCall) fill_buffer();
  arctrace_enter(7);
  if (loses == Loses::kExit) fill_buffer();
  arctrace_exit(7);
  test.drain().round();
  arctrace_enter(8);
  arctrace_exit(8);
}

struct Before {
  std::string name;
  void (*run)();
};

// Puts the call onto its slow path.
const Before kBefore[] = {
    {"nothing", [] {}},
    {"its grant in the chain is used up",
     [] { writer::thread_local_state.state->chain.take_grant_back(); }},
    {"its block is full", [] { arctrace_flush(); }},
    {"it has lost records", [] {
       fill_buffer();
       arctrace_enter(9);
       arctrace_exit(9);
       arctrace_flush();
     }}};

// Runs `body` within so many calls that a STACK that lists the innermost ones does not
// have all.
void within_calls(uint32_t count, const std::function<void()>& body) {
  if (count == 0) return body();
  call_hooked(10 + count, 1, [&] { within_calls(count - 1, body); });
}

void check(arctrace_scope scope, const Before& before, Loses loses) {
  TestSession test(buffer_with(scope, 1024, 24));
  CHECK_CHILD([&] {
    REQUIRE(arctrace_attach(test.path().c_str()) == 0);
    start_hooked_functions();
    const auto here = reinterpret_cast<uintptr_t>(&test);
    arctrace_shim_thread_start(here - (4u << 20), here + (64u << 10));
    within_calls(6, [&] {
      const auto run = [&](const std::function<bool(uint64_t)>& at_step) {
        before.run();
        test.drain().round();
        return single_step([] { call_hooked(2, 2); }, at_step);
      };
      run([](uint64_t) { return true; });  // does the work of a first call
      const uint64_t count = run([](uint64_t) { return true; });
      for (const uint64_t at : cuts(count, 100)) {
        run([&](uint64_t step) {
          if (step != at) return true;
          handle(test, loses);
          return false;
        });
        // The next block begins with a STACK, after which readers know the frames again.
        arctrace_flush();
        call_hooked(3, 3);
      }
    });
    const DecodedTrace trace = test.finish();
    CHECK(joined(trace.problems) == "");
    const ReplayedStack replayed =
        ReplayedStack::in_order_of_time(trace, ReplayedStack::Stacks::kChecked);
    CHECK(replayed.open().empty());
    CHECK(replayed.orphans().empty());
  });
}

TEST_CASE("lost anywhere: by a handler, in calls that take the slow path") {
  if (!can_single_step()) return testing::skip_case("no process may be stepped here");
  for (const arctrace_scope scope :
       {ARCTRACE_SCOPE_THREAD, ARCTRACE_SCOPE_SHARED, ARCTRACE_SCOPE_ADAPTIVE}) {
    for (const Before& before : kBefore) {
      for (const Loses loses : {Loses::kExit, Loses::kCall, Loses::kExitWhileOff}) {
        CAPTURE(scope);
        CAPTURE(before.name);
        CAPTURE(loses);
        check(scope, before, loses);
      }
    }
  }
}

}  // namespace
}  // namespace arctrace::testing
