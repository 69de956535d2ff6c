// A program built with each kind of hook for another machine, with the shim, emulated.
#include <doctest/doctest.h>

#include <cstdlib>
#include <map>
#include <set>
#include <sstream>
#include <string>

#include "tests/processes/emulator.hpp"
#include "tests/support/child.hpp"
#include "tests/support/test_session.hpp"

namespace arctrace::testing {
namespace {

void check_calls(const char* emulator, const std::string& program) {
  CAPTURE(program);
  recorder::BufferOptions options = small_buffer(4096, 64);
  options.clock = ARCTRACE_CLOCK_MONOTONIC;
  TestSession test(options);
  const int pid = start_child([&] {
    exec_command(emulator,
                 {"-E", "LD_PRELOAD=" + std::string(std::getenv("ARCTRACE_TEST_SHIM")),
                  "-E", "ARCTRACE_SESSION=" + test.path(), program});
  });
  CHECK(wait_for_child(pid) == "");
  mark_dead(test.view(), pid);
  const DecodedTrace trace = test.finish();
  CHECK(joined(trace.problems) == "");
  CHECK(joined(undefined_uses(trace)) == "");
  // main, half, and 10 times outer, which calls inner twice; in a thread run, and inner
  // once.
  std::map<uint64_t, uint64_t> calls;
  for (const DecodedRecord& enter : trace.of_type(ARCTRACE_TYPE_ENTER)) {
    ++calls[enter.u64(0)];
  }
  std::multiset<uint64_t> counts;
  for (const auto& call : calls) counts.insert(call.second);
  CHECK(counts == std::multiset<uint64_t>{1, 1, 1, 10, 21});
  CHECK(trace.of_type(ARCTRACE_TYPE_EXIT).size() +
            trace.of_type(ARCTRACE_TYPE_EXIT_NAMED).size() ==
        34);
  CHECK(trace.of_type(ARCTRACE_TYPE_THREAD).size() == 2);
  CHECK(trace.lost() == 0);
}

TEST_CASE("emulated shim: the calls of an instrumented program and its thread" *
          doctest::test_suite("emulated")) {
  const char* emulator = std::getenv("ARCTRACE_TEST_EMULATOR");
  std::istringstream programs(std::getenv("ARCTRACE_TEST_PROGRAMS"));
  for (std::string program; programs >> program;) check_calls(emulator, program);
}

}  // namespace
}  // namespace arctrace::testing
