// Which calls are recorded under limits of depth and time, filtered and notrace
// functions, for frames that return and frames that are jumped over.
#include "src/calls/call_filter.hpp"

#include <arctrace/arctrace.h>
#include <doctest/doctest.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "src/api/shim_interface.h"
#include "tests/support/child.hpp"
#include "tests/support/test_session.hpp"

namespace arctrace::testing {
namespace {

constexpr uint32_t kSelf = 1000000;

// Enters function `key` in a machine frame of its own, `level` frames in.
void enter(uint64_t key, uint32_t level, uint32_t flags = 0) {
  const uintptr_t cfa = kSelf - level * 100;
  const arctrace_shim_call call = {cfa, cfa - 50, 0,
                                   key, level,    flags | ARCTRACE_SHIM_BEGINS_FRAME};
  arctrace_shim_enter(key, &call);
}

void leave(uint64_t key, uint32_t level) {
  const uintptr_t cfa = kSelf - level * 100;
  if (arctrace_shim_exit(key, cfa - 50) == 0) {
    arctrace_shim_exit_at(key, cfa, cfa - 50);
  }
}

void spend(uint64_t ns) {
  constexpr uint64_t kSecond = 1'000'000'000;
  const timespec time = {static_cast<time_t>(ns / kSecond),
                         static_cast<long>(ns % kSecond)};
  nanosleep(&time, nullptr);
}

// The records of `calls` under `filter`, in small blocks: "+1 +2 -2 -1"; u: unwound, *:
// an event, ?: an exit with a name.
std::string record(const arctrace_shim_filter& filter, const std::function<void()>& calls,
                   uint64_t lost = 0) {
  TestSession test(small_buffer(512, 4000));
  CHECK_CHILD([&] {
    REQUIRE(arctrace_attach(test.path().c_str()) == 0);
    arctrace_shim_thread_start(1, uintptr_t{2} * kSelf);
    arctrace_shim_set_filter(&filter);
    calls();
  });
  const DecodedTrace trace = test.finish();
  CHECK(joined(trace.problems) == "");
  CHECK(trace.lost() == lost);
  std::string text;
  std::vector<uint64_t> open;
  std::map<uint32_t, uint64_t> last_ticks;  // by writer
  for (const DecodedBlock& block : trace.blocks) {
    for (const DecodedRecord& record : block.records) {
      const auto add = [&](const std::string& what) {
        text += (text.empty() ? "" : " ") + what;
      };
      if (record.type < ARCTRACE_TYPE_PROCESS) {
        CHECK(record.ticks >= last_ticks[record.writer]);
        last_ticks[record.writer] = record.ticks;
      }
      switch (record.type) {
        case ARCTRACE_TYPE_STACK:
          CHECK(record.u32(0) == open.size());
          for (uint32_t i = 0; i < record.u32(4); ++i) {
            CHECK(record.u64(8 + 8 * size_t{i}) == open[open.size() - record.u32(4) + i]);
          }
          break;
        case ARCTRACE_TYPE_ENTER:
          open.push_back(record.u64(0));
          add("+" + std::to_string(open.back()));
          break;
        case ARCTRACE_TYPE_EXIT:
          REQUIRE_FALSE(open.empty());
          add("-" + std::to_string(open.back()));
          open.pop_back();
          break;
        case ARCTRACE_TYPE_UNWIND:
          REQUIRE(record.u32(0) <= open.size());
          open.resize(open.size() - record.u32(0));
          add("u" + std::to_string(record.u32(0)));
          break;
        case ARCTRACE_TYPE_EXIT_NAMED:
          add("?" + std::to_string(record.u64(0)));
          break;
        case ARCTRACE_TYPE_MARK:
          add("*");
          break;
        default:
          break;
      }
    }
  }
  return text;
}

TEST_CASE("call filter: only what is filtered in, and what it calls") {
  CHECK(record({1, 0, 0}, [] {
          enter(1, 1);
          enter(2, 2, ARCTRACE_SHIM_FILTERED_IN);
          enter(3, 3);
          leave(3, 3);
          leave(2, 2);
          enter(3, 2);
          leave(3, 2);
          leave(1, 1);
        }) == "+2 +3 -3 -2");
}

TEST_CASE(
    "call filter: a notrace function is filtered out with all it calls, even if filtered "
    "in") {
  CHECK(record({0, 0, 0}, [] {
          enter(1, 1);
          enter(2, 2, ARCTRACE_SHIM_NOTRACE);
          enter(3, 3, ARCTRACE_SHIM_FILTERED_IN);
          leave(3, 3);
          leave(2, 2);
          enter(3, 2);
          leave(3, 2);
          leave(1, 1);
        }) == "+1 +3 -3 -1");
}

TEST_CASE("call filter: a hidden function hides itself only") {
  CHECK(record({0, 0, 0}, [] {
          enter(1, 1);
          enter(2, 2, ARCTRACE_SHIM_HIDDEN);
          enter(3, 3);
          leave(3, 3);
          leave(2, 2);
          leave(1, 1);
        }) == "+1 +3 -3 -1");
}

TEST_CASE("call filter: depth counts what is recorded, anew from what is filtered in") {
  CHECK(record({0, 2, 0}, [] {
          enter(1, 1);
          enter(2, 2, ARCTRACE_SHIM_HIDDEN);
          enter(3, 3);
          enter(4, 4);
          enter(5, 5, ARCTRACE_SHIM_FILTERED_IN);
          enter(6, 6);
          enter(7, 7);
          for (uint32_t level = 7; level > 0; --level) leave(level, level);
        }) == "+1 +3 +5 +6 -6 -5 -3 -1");
}

TEST_CASE("call filter: a jump out of a notrace function ends the filter") {
  CHECK(record({0, 0, 0}, [] {
          enter(1, 1);
          enter(2, 2, ARCTRACE_SHIM_NOTRACE);
          enter(3, 3);
          enter(4, 2);  // in the place of 2
          enter(5, 3);
          leave(1, 1);
        }) == "+1 +4 +5 u2 -1");
}

TEST_CASE("call filter: too deep to be kept, what would be recorded is lost") {
  constexpr uint64_t kLost = (1500 - ARCTRACE_OPEN_FRAMES_MAX) / 2;
  const auto calls = [] {
    enter(1, 1, ARCTRACE_SHIM_HIDDEN);
    for (uint32_t level = 2; level <= 1500; ++level) {
      enter(2, level, level % 2 == 0 ? ARCTRACE_SHIM_HIDDEN : 0);
    }
    for (uint32_t level = 1500; level >= 3; --level) leave(2, level);
    leave(2, 2);
    leave(1, 1);
    CHECK(writer::thread_local_state.state->open.depth == 0);
  };
  CHECK(record({0, 0, 0}, calls, 2 * kLost).size() == 511 * 6 - 1);  // "+2 " and "-2 "
}

TEST_CASE("call filter: short calls leave nothing, long ones their true times") {
  constexpr uint64_t kLong = 1'500'000'000;  // no short call takes as long
  CHECK(record({0, 0, kLong}, [] {
          for (int i = 0; i < 100; ++i) {
            enter(1, 1);
            enter(2, 2);
            leave(2, 2);
            leave(1, 1);
          }
          enter(3, 1);
          enter(4, 2);
          leave(4, 2);
          enter(5, 2);
          spend(kLong * 5 / 4);
          leave(5, 2);
          enter(6, 2);
          leave(6, 2);
          leave(3, 1);
          enter(7, 1);
          leave(7, 1);
        }) == "+3 +5 -5 -3");
}

TEST_CASE("call filter: a record inside a short call has the call recorded") {
  CHECK(record({0, 0, 1'000'000'000}, [] {
          enter(1, 1);
          enter(2, 2);
          leave(2, 2);
          enter(3, 2);
          arctrace_mark("here");
          leave(3, 2);
          enter(4, 2);
          leave(4, 2);
          leave(1, 1);
        }) == "+1 +3 * -3 -1");
}

TEST_CASE("call filter: short calls that were jumped out of leave nothing either") {
  CHECK(record({0, 0, 1'000'000'000}, [] {
          enter(1, 1);
          enter(2, 2);
          enter(3, 3);
          leave(1, 1);  // jumps out of 2 and 3
          enter(4, 1);
          arctrace_mark("here");
          enter(5, 2);
          enter(6, 1);  // jumps out of 4 and 5
          leave(6, 1);
        }) == "+4 * u1");
}

TEST_CASE("call filter: a fork child begins with what held where it forked") {
  CHECK(record({1, 0, 0}, [] {
          enter(1, 1, ARCTRACE_SHIM_FILTERED_IN);
          const pid_t child = fork();
          if (child == 0) {
            enter(2, 2);
            leave(2, 2);
            _exit(0);
          }
          waitpid(child, nullptr, 0);
          leave(1, 1);
        }).find("+2 -2") != std::string::npos);
}

}  // namespace
}  // namespace arctrace::testing
