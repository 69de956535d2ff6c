// A writer is killed after every single instruction of its calls: at most the record that
// it was writing is lost, and its blocks and slot are used again.
#include <arctrace/arctrace.h>
#include <doctest/doctest.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <functional>
#include <utility>
#include <vector>

#include "src/base/shared_atomics.hpp"
#include "src/os/robust_lock.hpp"
#include "src/protocol/block_state.hpp"
#include "tests/stress/cuts.hpp"
#include "tests/support/child.hpp"
#include "tests/support/effort.hpp"
#include "tests/support/exit_hooked_function.hpp"
#include "tests/support/hooked_function.hpp"
#include "tests/support/lock_call.hpp"
#include "tests/support/single_step.hpp"
#include "tests/support/skip.hpp"

namespace arctrace::testing {
namespace {

using Action = std::function<void(uint64_t number)>;

// Runs `call` to its end, or until it is killed after instruction `at`.
void run_until(uint64_t at, const std::function<void()>& call) {
  single_step(call, [at](uint64_t step) {
    if (step == at) kill(getpid(), SIGKILL);
    return true;
  });
}

// The number of blocks that will never be freed, once the collector has done all it can.
uint32_t blocks_kept(TestSession& test) {
  while (test.drain().round() > 0) {
  }
  const uint32_t open = test.view().control().shared_current != 0 ? 1 : 0;
  return test.view().geometry().block_count - test.blocks_in(ARCTRACE_PHASE_FREE) - open;
}

struct Bounds {
  uint64_t deaths = 150;  // how many children die, about
  uint64_t losses = 0;    // of each child, before `call`
  std::function<void(const DecodedTrace&)> check = [](const DecodedTrace&) {};
};

// Children write number n as event 1 and die in `call(n)`, which writes it as event 2.
void kill_everywhere(const recorder::BufferOptions& options,
                     const std::function<void()>& before, const Action& call,
                     const Bounds& bounds = {}) {
  if (!can_single_step()) return testing::skip_case("no process may be stepped here");
  shared_word() = 0;
  TestSession test(options);
  const auto child = [&](uint64_t number, uint64_t at) {
    return run_in_child([&] {
      REQUIRE(arctrace_attach(test.path().c_str()) == 0);
      write_checked(1, number);
      before();
      if (at == UINT64_MAX) {
        shared_word() = single_step([&] { call(number); }, [](uint64_t) { return true; });
      } else {
        run_until(at, [&] { call(number); });
      }
    });
  };
  REQUIRE(child(1000000, UINT64_MAX) == "");
  uint64_t children = 0;
  uint64_t deaths = 0;
  for (const uint64_t at : cuts(shared_word(), bounds.deaths)) {
    // A call that reads a clock in fewer instructions than the first one comes to its
    // end.
    const std::string end = child(children, at);
    CHECK((end == "signal 9" || end.empty()));
    if (!end.empty()) ++deaths;
    ++children;
    test.drain().round();
  }
  CHECK(deaths > tries(30));
  CHECK(blocks_kept(test) == 0);
  for (uint32_t i = 0; i < Recycle<IpcAtomics>::slots_used(test.view()); ++i) {
    CHECK(test.view().slot(i).lock == 0);
  }
  const DecodedTrace trace = test.finish();
  CHECK(joined(trace.problems) == "");
  CHECK(numbers_of(trace, 1).size() == children + 1);
  CHECK(numbers_of(trace, 2).size() <= children + 1);
  CHECK(numbers_of(trace, 2).contains(1000000));
  CHECK(trace.torn() <= children);
  CHECK(trace.lost() == bounds.losses * (children + 1));
  bounds.check(trace);
}

// The kinds of records, and the function or event that each names.
std::vector<std::pair<uint16_t, uint64_t>> kinds_of(
    const std::vector<DecodedRecord>& records) {
  std::vector<std::pair<uint16_t, uint64_t>> kinds;
  for (const DecodedRecord& record : records) {
    const bool is_event = record.type == ARCTRACE_TYPE_EVENT;
    kinds.emplace_back(record.type, is_event ? record.u32(0) : record.u64(0));
  }
  return kinds;
}

// Each writer's records end where it died, and are those that it writes if it lives.
void check_beginnings(const DecodedTrace& trace) {
  std::vector<std::vector<std::pair<uint16_t, uint64_t>>> writers;
  size_t longest = 0;  // index
  for (uint32_t writer = 1;; ++writer) {
    writers.push_back(kinds_of(trace.of_writer(writer)));
    if (writers.back().empty()) break;
    if (writers.back().size() > writers[longest].size()) longest = writer - 1;
  }
  CHECK(writers.size() > numbers_of(trace, 1).size());
  const auto& whole = writers[longest];
  for (const auto& writer : writers) {
    CHECK(std::equal(writer.begin(), writer.end(), whole.begin()));
  }
}

TEST_CASE("killed anywhere: in a record for the block at hand") {
  for (const arctrace_scope scope : kScopes) {
    CAPTURE(scope);
    kill_everywhere(
        buffer_with(scope, 1024, 64), [] {}, [](uint64_t n) { write_checked(2, n); });
  }
}

TEST_CASE("killed anywhere: in a record that needs a new block") {
  for (const arctrace_scope scope : kScopes) {
    CAPTURE(scope);
    kill_everywhere(
        buffer_with(scope, 512, 64),
        [] {
          arctrace_enter(5);
          arctrace_enter(6);
        },
        [](uint64_t n) {
          const std::byte padding[250] = {};
          arctrace_write(3, padding, sizeof padding);
          write_checked(2, n);
        });
  }
}

TEST_CASE("killed anywhere: as a thread gets blocks of its own, or gives them up") {
  for (void (*prepare)() : {prepare_own_blocks, prepare_chain}) {
    kill_everywhere(buffer_with(ARCTRACE_SCOPE_ADAPTIVE, 1024, 64), prepare,
                    [](uint64_t n) { write_checked(2, n); });
  }
}

TEST_CASE("killed anywhere: in calls of functions with hooks") {
  const std::vector<void (*)(const std::function<void()>&)> kinds = {
    [](const std::function<void()>& body) {
      call_hooked(11, 1, [&] { call_hooked(12, 2, body); });
    },
#if defined(__x86_64__)
    [](const std::function<void()>& body) {
      call_exit_hooked(11, [&] { call_exit_hooked(12, body); });
    },
#endif
  };
  for (const arctrace_scope scope : kScopes) {
    for (const auto& call : kinds) {
      CAPTURE(scope);
      kill_everywhere(
          buffer_with(scope, 1024, 64),
          [&] {
            start_hooked_functions();
            start_exit_hooked_functions();
            call([] {});
          },
          [&](uint64_t n) { call([=] { write_checked(2, n); }); },
          {.deaths = 400, .check = check_beginnings});
    }
  }
}

// Each entry has all its locks.
void check_locks(const DecodedTrace& trace) {
  for (const DecodedRecord& record : trace.of_type(ARCTRACE_TYPE_ENTER)) {
    const auto locks = static_cast<uint32_t>(record.u64(0) - 10);
    REQUIRE(record.body.size() == 8 + 8 * locks);
    for (uint32_t i = 1; i <= locks; ++i) {
      CHECK(record.u64(sizeof(arctrace_lock_word) * i) == lock_of(record.u64(0), i));
    }
  }
}

TEST_CASE("killed anywhere: in lock calls") {
  for (const arctrace_scope scope : kScopes) {
    for (const uint32_t block_size : {512u, 1024u}) {
      CAPTURE(scope);
      CAPTURE(block_size);
      const auto call = [](const std::function<void()>& body) {
        call_with_locks(11, 1, [&] { call_with_locks(12, 2, body); });
      };
      kill_everywhere(
          buffer_with(scope, block_size, 64),
          [&] {
            start_lock_calls();
            call([] {});
          },
          [&](uint64_t n) { call([=] { write_checked(2, n); }); },
          {.deaths = 400, .check = [](const DecodedTrace& trace) {
             check_beginnings(trace);
             check_locks(trace);
           }});
    }
  }
}

TEST_CASE("killed anywhere: in a record reserved in place") {
  for (const arctrace_scope scope : kScopes) {
    CAPTURE(scope);
    kill_everywhere(
        buffer_with(scope, 1024, 64), [] {}, [](uint64_t n) { reserve_checked(2, n); });
  }
}

TEST_CASE("killed anywhere: as losses are reported, they are reported once") {
  for (const arctrace_scope scope : kScopes) {
    CAPTURE(scope);
    kill_everywhere(
        buffer_with(scope, 1024, 64),
        [] {
          for (int i = 0; i < 3; ++i) {
            arctrace_write(3, nullptr, ARCTRACE_PAYLOAD_MAX + 1);  // too big
          }
        },
        [](uint64_t n) {
          arctrace_flush();
          write_checked(2, n);
        },
        {.deaths = 300, .losses = 3});
  }
}

TEST_CASE("killed anywhere: in a definition, and as a block is handed over") {
  kill_everywhere(
      buffer_with(ARCTRACE_SCOPE_THREAD, 512, 64), [] {},
      [](uint64_t n) {
        arctrace_define_name(
            "a name that soon fills a block of definitions with its like");
        arctrace_flush();
        write_checked(2, n);
      });
}

TEST_CASE("killed anywhere: in the first record of a fork child") {
  if (!can_single_step()) return testing::skip_case("no process may be stepped here");
  shared_word() = 0;
  CHECK_CHILD([] {
    TestSession test(buffer_with(ARCTRACE_SCOPE_THREAD, 4096, 64));
    REQUIRE(arctrace_attach(test.path().c_str()) == 0);
    CHECK_CHILD([] {
      shared_word() =
          single_step([] { write_checked(2, 0); }, [](uint64_t) { return true; });
    });
    uint64_t children = 0;
    uint64_t deaths = 0;
    for (const uint64_t at : cuts(shared_word(), 150)) {
      ++children;
      const std::string end =
          run_in_child([&] { run_until(at, [&] { write_checked(2, children); }); });
      CHECK((end == "signal 9" || end.empty()));
      if (!end.empty()) ++deaths;
      test.drain().round();
    }
    CHECK(deaths > tries(100));
    while (test.drain().round() > 0) {
    }
    CHECK(test.blocks_in(ARCTRACE_PHASE_FREE) == 63);  // all but our definitions'
    const DecodedTrace trace = test.finish();
    CHECK(joined(trace.problems) == "");
    CHECK(numbers_of(trace, 2).contains(0));
  });
}

TEST_CASE("killed anywhere: as a robust lock is taken, it is marked or untouched") {
  if (!can_single_step()) return testing::skip_case("no process may be stepped here");
  struct Words {
    arctrace_writer_slot first, second;
  };
  static auto* words = reinterpret_cast<Words*>(&shared_word() + 8);
  const auto lock = [](arctrace_writer_slot& slot) {
    return robust_lock({slot.lock, slot.robust_prev, slot.robust_next}, 0,
                       static_cast<uint32_t>(getpid()));
  };
  for (uint64_t at = 0;; ++at) {
    CAPTURE(at);
    *words = {};
    const std::string ended = run_in_child([&] {
      REQUIRE(lock(words->first));
      run_until(at, [&] { lock(words->second); });
    });
    constexpr uint32_t kMark = 0x40000000;
    CHECK(words->first.lock == kMark);
    CHECK((words->second.lock == 0 || words->second.lock == kMark));
    if (ended.empty()) {
      CHECK(words->second.lock == kMark);
      CHECK(at > 20);
      break;
    }
    REQUIRE(ended == "signal 9");
  }
}

}  // namespace
}  // namespace arctrace::testing
