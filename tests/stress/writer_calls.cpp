#include "tests/stress/writer_calls.hpp"

#include <arctrace/arctrace.h>
#include <doctest/doctest.h>

#include <algorithm>

#include "src/writer/thread_state.hpp"
#include "tests/stress/cuts.hpp"
#include "tests/support/child.hpp"
#include "tests/support/exit_hooked_function.hpp"
#include "tests/support/hooked_function.hpp"
#include "tests/support/lock_call.hpp"
#include "tests/support/single_step.hpp"
#include "tests/support/skip.hpp"

namespace arctrace::testing {

void call_function(uint32_t event, uint64_t number) {
  arctrace_enter(number * 10 + event);
  arctrace_exit(number * 10 + event);
}

void write_to_new_block(uint32_t event, uint64_t number) {
  arctrace_flush();
  write_checked(event, number);
}

namespace {

void call_hooked_functions(uint32_t event, uint64_t number) {
  call_hooked(number * 10 + event, 1 + event,
              [=] { call_hooked(number * 10 + event, 10 + event); });
}

void call_lock_functions(uint32_t event, uint64_t number) {
  const uint64_t key = number * 10 + event;
  call_with_locks(key, 1, [=] { call_with_locks(key, 2, [] {}); });
}

#if defined(__x86_64__)
void call_exit_hooked_functions(uint32_t event, uint64_t number) {
  call_exit_hooked(number * 10 + event,
                   [=] { call_exit_hooked(number * 10 + event + 2, [] {}); });
}
#endif

void define_and_use(uint32_t event, uint64_t number) {
  arctrace_instant(arctrace_define_name("a name"));
  write_checked(event, number);
}

const WriterAction kWriterActions[] = {{"write", 1, write_checked},
                                       {"reserve", 1, reserve_checked},
                                       {"call", 2, call_function},
                                       {"hooked", 4, call_hooked_functions},
                                       {"locks", 4, call_lock_functions},
#if defined(__x86_64__)
                                       {"reported", 4, call_exit_hooked_functions},
#endif
                                       {"new block", 1, write_to_new_block},
                                       {"define", 2, define_and_use}};

}  // namespace

std::span<const WriterAction> all_writer_actions() { return kWriterActions; }

void in_session(const recorder::BufferOptions& options,
                const std::function<void(TestSession&)>& body) {
  if (!can_single_step()) return testing::skip_case("no process may be stepped here");
  TestSession test(options);
  CHECK_CHILD([&] {
    REQUIRE(arctrace_attach(test.path().c_str()) == 0);
    start_hooked_functions();
    start_lock_calls();
    start_exit_hooked_functions();
    body(test);
  });
}

void check_at_rest(const TestSession& test, uint64_t places_in_use) {
  CHECK(writer::thread_local_state.guard == 0);
  CHECK(writer::thread_local_state.nesting == 0);
  const arctrace_writer_slot& slot =
      test.view().slot(writer::thread_local_state.state->slot.index);
  for (const uint32_t name : slot.active) CHECK(name == 0);
  const auto held = std::count_if(std::begin(slot.held), std::end(slot.held),
                                  [](uint32_t name) { return name != 0; });
  CHECK(static_cast<uint64_t>(held) <= places_in_use);
}

}  // namespace arctrace::testing
