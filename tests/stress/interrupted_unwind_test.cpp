// A call that finds abandoned frames is interrupted at its single instructions by a
// signal handler whose own call finds the same frames.
#include <arctrace/arctrace.h>
#include <doctest/doctest.h>

#include <csetjmp>
#include <cstdint>
#include <functional>

#include "src/api/shim_interface.h"
#include "src/writer/thread_state.hpp"
#include "tests/stress/cuts.hpp"
#include "tests/support/child.hpp"
#include "tests/support/hooked_function.hpp"
#include "tests/support/replayed_stack.hpp"
#include "tests/support/single_step.hpp"
#include "tests/support/skip.hpp"

namespace arctrace::testing {
namespace {

sigjmp_buf jump_target;

// Jumps from so far down on the stack that the signal handler's frames are above.
__attribute__((noinline)) void jump_from_far_below() {
  volatile char room[64 << 10];
  room[0] = 0;
  static_cast<void>(room[0]);
  call_hooked(4, 4, [] { siglongjmp(jump_target, 1); });
}

void leave_a_frame_open() {
  if (sigsetjmp(jump_target, 1) == 0) jump_from_far_below();
}

void interrupt_everywhere(const recorder::BufferOptions& options) {
  TestSession test(options);
  CHECK_CHILD([&] {
    REQUIRE(arctrace_attach(test.path().c_str()) == 0);
    start_hooked_functions();
    const auto here = reinterpret_cast<uintptr_t>(&test);
    arctrace_shim_thread_start(here - (4u << 20), here + (64u << 10));
    const writer::OpenFrames* open = nullptr;
    uint32_t jumps = 0;
    call_hooked(1, 1, [&] {
      open = &writer::thread_local_state.state->open;
      const auto run = [&](const std::function<bool(uint64_t)>& at_step) {
        leave_a_frame_open();
        ++jumps;
        REQUIRE(open->depth == 2);
        return single_step([] { call_hooked(2, 2); }, at_step);
      };
      run([](uint64_t) { return true; });  // makes the call known
      const uint64_t count = run([](uint64_t) { return true; });
      for (const uint64_t at : cuts(count, 150)) {
        run([at](uint64_t step) {
          if (step == at) call_hooked(3, 3);
          return step < at;
        });
        REQUIRE(open->depth == 1);
        REQUIRE(open->frames[0].key == 1);
      }
    });
    CHECK(open->depth == 0);
    const DecodedTrace trace = test.finish();
    CHECK(joined(trace.problems) == "");
    const ReplayedStack replayed = ReplayedStack::in_order_of_time(trace);
    CHECK(replayed.open().empty());
    CHECK(replayed.orphans().empty());
    CHECK(replayed.unwound() == jumps);
  });
}

TEST_CASE("interrupted unwind: by a handler that finds the same frames left") {
  if (!can_single_step()) return testing::skip_case("no process may be stepped here");
  for (const arctrace_scope scope : kScopes) {
    CAPTURE(scope);
    interrupt_everywhere(buffer_with(scope, 65536, 400));
  }
}

}  // namespace
}  // namespace arctrace::testing
