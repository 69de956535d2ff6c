// A writer is stopped after every single instruction of its calls: the others continue as
// if it were not there, and when it is continued it finishes its record and harms nobody.
#include <arctrace/arctrace.h>
#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <iterator>

#include "src/base/shared_atomics.hpp"
#include "src/protocol/block_state.hpp"
#include "tests/stress/cuts.hpp"
#include "tests/stress/neighbour.hpp"
#include "tests/support/child.hpp"
#include "tests/support/effort.hpp"
#include "tests/support/single_step.hpp"
#include "tests/support/skip.hpp"

namespace arctrace::testing {
namespace {

using Action = std::function<void(uint64_t number)>;

// Batches of the neighbour: in all more than the buffer can store, so that blocks are
// used again.
constexpr uint32_t kBatches = 9;

// Enough blocks for the neighbour's newest records, even while half of them contain
// definitions and a writer has just emptied some more: a writer takes the blocks of a
// dead process for its own, as many as one has, but these are then the oldest blocks.
constexpr uint32_t kBlocks = 32;

recorder::BufferOptions buffer_in(arctrace_mode mode, arctrace_scope scope,
                                  uint32_t blocks = kBlocks) {
  recorder::BufferOptions options = buffer_with(scope, 1024, blocks);
  options.mode = mode;
  return options;
}

// Stops after instruction `at`; UINT64_MAX: counts the instructions in shared_word()
// instead.
void run_stopping(uint64_t at, const std::function<void()>& call) {
  const uint64_t steps = single_step(call, [at](uint64_t step) {
    if (step == at) raise(SIGSTOP);
    return step != at;
  });
  if (at == UINT64_MAX) shared_word() = steps;
}

// Waits until the child has stopped; false: it has ended.
bool has_stopped(int pid) {
  siginfo_t info{};
  REQUIRE(waitid(P_PID, static_cast<id_t>(pid), &info, WSTOPPED | WEXITED | WNOWAIT) ==
          0);
  return info.si_code == CLD_STOPPED;
}

// Runs `write(n, at)` in a process of its own for n from 0, each time stopping at another
// instruction; calls stopped(n) meanwhile and ended(n) after its end. Returns the number
// of writers.
uint64_t stop_everywhere(const std::function<void(uint64_t n, uint64_t at)>& write,
                         const Action& stopped, const Action& ended) {
  shared_word() = 0;
  uint64_t writers = 0;
  CHECK_CHILD([&] { write(writers, UINT64_MAX); });
  ended(writers++);
  uint64_t stops = 0;
  for (const uint64_t at : cuts(shared_word(), 40)) {
    CAPTURE(at);
    const int pid = start_child([&] { write(writers, at); });
    if (has_stopped(pid)) {
      ++stops;
      stopped(writers);
      kill(pid, SIGCONT);
    }
    CHECK(wait_for_child(pid) == "");
    ended(writers++);
  }
  CHECK(stops > tries(20));
  return writers;
}

void define_and_hand_over(uint64_t n) {
  arctrace_define_name("a name that soon fills a block of definitions with its like");
  arctrace_flush();
  write_checked(2, n);
}

struct Call {
  const char* name;
  void (*run)(uint64_t n);
};
const Call kCalls[] = {
    {"for the block at hand", [](uint64_t n) { write_checked(2, n); }},
    {"that needs a new block",
     [](uint64_t n) {
       const std::byte padding[600] = {};
       arctrace_write(5, padding, sizeof padding);
       arctrace_write(5, padding, 220);
       write_checked(2, n);
     }},
    {"reserved in place", [](uint64_t n) { reserve_checked(2, n); }},
    {"after a definition and a closed block", define_and_hand_over},
};

// Writes number n as event 1, in the call as event 2, and as event 3.
void write_around(const TestSession& test, uint64_t n, uint64_t at, const Call& call) {
  REQUIRE(arctrace_attach(test.path().c_str()) == 0);
  write_checked(1, n);
  run_stopping(at, [&] { call.run(n); });
  write_checked(3, n);
}

void drain_all(TestSession& test) {
  while (test.drain().round() > 0) {
  }
}

TEST_CASE("stopped anywhere: the collector and the others go on, nothing is lost") {
  if (!can_single_step()) return testing::skip_case("no process may be stepped here");
  for (const arctrace_scope scope : kScopes) {
    for (const Call& call : kCalls) {
      CAPTURE(scope);
      CAPTURE(std::string(call.name));
      TestSession test(buffer_in(ARCTRACE_MODE_DROP, scope));
      Neighbour neighbour(test);
      const auto go_on = [&](uint64_t) {
        for (uint32_t i = 0; i < kBatches; ++i) {
          neighbour.write_batch();
          test.drain().round();
        }
        CHECK(lost_so_far(test) == 0);
      };
      const uint64_t writers = stop_everywhere(
          [&](uint64_t n, uint64_t at) { write_around(test, n, at, call); }, go_on,
          [&](uint64_t) { drain_all(test); });
      neighbour.end();
      drain_all(test);
      const uint32_t open = test.blocks_in(ARCTRACE_PHASE_SHARED);
      CHECK(open <= (scope == ARCTRACE_SCOPE_SHARED ? 1u : 0u));
      CHECK(test.blocks_in(ARCTRACE_PHASE_FREE) + open ==
            test.view().geometry().block_count);
      const DecodedTrace trace = test.finish();
      CHECK(joined(trace.problems) == "");
      for (const uint32_t event : {1u, 2u, 3u}) {
        CHECK(numbers_of(trace, event) == all_below(writers));
      }
      CHECK(numbers_of(trace, Neighbour::kEvent) == all_below(neighbour.written()));
      CHECK(trace.torn() == 0);
      CHECK(trace.lost() == 0);
    }
  }
}

// The ring has the neighbour's newest records, and nothing damaged.
DecodedTrace check_window(const TestSession& test, const Neighbour& neighbour) {
  constexpr uint64_t kNewest = 100;  // the ring is larger, but has records of others
  CHECK(lost_so_far(test) == 0);
  DecodedTrace trace = test.snapshot();
  CHECK(joined(trace.problems) == "");
  const std::set<uint64_t> found = numbers_of(trace, Neighbour::kEvent);
  const uint64_t newest = std::min(kNewest, neighbour.written());
  CHECK(std::distance(found.lower_bound(neighbour.written() - newest), found.end()) ==
        static_cast<int64_t>(newest));
  return trace;
}

// The state of the stopped writer.
struct Stop {
  bool written = false;  // complete, so that others may overwrite it
  uint32_t name = 0;  // index + 1 of the shared block that it had named, or reserved in
  uint64_t handout = 0;  // of that block
};

Stop stop_of(const TestSession& test, uint64_t n) {
  Stop stop;
  const auto note = [&](const uint32_t& name) {
    if (name != 0) stop.name = name;
  };
  Recycle<IpcAtomics>::for_each_active(test.view(), note);
  for (uint32_t i = 0; i < Recycle<IpcAtomics>::slots_used(test.view()); ++i) {
    for (const uint32_t name : test.view().slot(i).held) note(name);
  }
  if (stop.name != 0) stop.handout = test.view().block_header(stop.name - 1).handout;
  stop.written = stop.name == 0 && numbers_of(test.snapshot(), 2).contains(n);
  return stop;
}

// Whether number n may be gone: it was written before, or the writer continued in a block
// that was the oldest by then, and overwrote the number itself with the next record.
bool may_be_overwritten(const TestSession& test, const Stop& stop) {
  return stop.written ||
         (stop.name != 0 &&
          test.view().block_header(stop.name - 1).handout != stop.handout);
}

TEST_CASE("stopped anywhere: the ring is overwritten around the stopped writer") {
  if (!can_single_step()) return testing::skip_case("no process may be stepped here");
  for (const arctrace_scope scope : kScopes) {
    for (const Call& call : kCalls) {
      CAPTURE(scope);
      CAPTURE(std::string(call.name));
      TestSession test(buffer_in(ARCTRACE_MODE_OVERWRITE, scope));
      Neighbour neighbour(test);
      Stop stop;
      const auto go_on = [&](uint64_t n) {
        stop = stop_of(test, n);
        for (uint32_t i = 0; i < kBatches; ++i) neighbour.write_batch();
        // A snapshot waits some time for a writer that is in a shared block.
        if (n % 8 == 0) check_window(test, neighbour);
      };
      const auto check = [&](uint64_t n) {
        const DecodedTrace trace = check_window(test, neighbour);
        CHECK((numbers_of(trace, 2).contains(n) || may_be_overwritten(test, stop)));
        CHECK(numbers_of(trace, 3).contains(n));
        CHECK(trace.torn() == 0);
      };
      stop_everywhere([&](uint64_t n, uint64_t at) { write_around(test, n, at, call); },
                      go_on, check);
    }
  }
}

constexpr uint32_t kFewBlocks = 6;

// Takes over all blocks of a small ring, one after the other.
void write_around_the_ring() {
  const std::byte padding[600] = {};
  for (uint32_t i = 0; i <= kFewBlocks; ++i) arctrace_write(5, padding, sizeof padding);
}

// Counts the instructions of `call` in a process of its own.
uint64_t count_steps(const TestSession& test, const std::function<void()>& call) {
  shared_word() = 0;
  CHECK_CHILD([&] {
    REQUIRE(arctrace_attach(test.path().c_str()) == 0);
    write_checked(1, 0);
    run_stopping(UINT64_MAX, call);
  });
  return shared_word();
}

// Both stop: the owner of a block in a call, and another writer, which overwrites the
// ring, at any of its instructions. Then the owner continues, and after its end the other
// one.
TEST_CASE("stopped anywhere: the owner of a block goes on amid its takeover") {
  if (!can_single_step()) return testing::skip_case("no process may be stepped here");
  const uint64_t pairs = is_long() ? 1000 : 3;
  Random random(test_seed());
  for (const arctrace_scope scope : kScopes) {
    const uint64_t of_gate = random.next() % std::size(kCalls);
    for (const Call& call : kCalls) {
      if (is_gate() && &call != &kCalls[of_gate]) continue;
      CAPTURE(scope);
      CAPTURE(std::string(call.name));
      TestSession test(buffer_in(ARCTRACE_MODE_OVERWRITE, scope, kFewBlocks));
      const uint64_t steps = count_steps(test, [&] { call.run(0); });
      const uint64_t other_steps = count_steps(test, write_around_the_ring);
      uint64_t amid = 0;
      // If the owner has stopped there, the other writer may have fewer instructions than
      // were counted.
      constexpr uint64_t kPairsMax = 1000;
      for (uint64_t n = 0; n < pairs || (amid == 0 && n < kPairsMax); ++n) {
        CAPTURE(n);
        const uint64_t owner_stops = random.next() % steps;
        const uint64_t other_stops = random.next() % other_steps;
        CAPTURE(owner_stops);
        CAPTURE(other_stops);
        const int owner = start_child([&] { write_around(test, n, owner_stops, call); });
        const bool owner_is_amid = has_stopped(owner);
        const int other = start_child([&] {
          REQUIRE(arctrace_attach(test.path().c_str()) == 0);
          write_checked(1, n);
          run_stopping(other_stops, write_around_the_ring);
          write_checked(6, n);
        });
        const bool other_is_amid = has_stopped(other);
        if (other_is_amid && owner_is_amid) ++amid;
        kill(owner, SIGCONT);
        CHECK(wait_for_child(owner) == "");
        kill(other, SIGCONT);
        CHECK(wait_for_child(other) == "");
        const DecodedTrace trace = test.snapshot();
        CHECK(joined(trace.problems) == "");
        // The owner may have overwritten it unless the other one had stopped.
        CHECK((numbers_of(trace, 6).contains(n) || !other_is_amid));
        CHECK(trace.torn() == 0);
        CHECK(lost_so_far(test) == 0);
        CHECK(test.blocks_in(ARCTRACE_PHASE_RESETTING) == 0);
      }
      CHECK(amid > 0);
    }
  }
}

constexpr uint64_t kAfterLoss = 3;

// Writes the first record after a loss, while another writer has just taken the freed
// blocks.
void write_after_loss(uint64_t at, const TestSession& test) {
  constexpr uint32_t kMoreThanFit = 3000;
  REQUIRE(arctrace_attach(test.path().c_str()) == 0);
  arctrace_enter(1);
  for (uint32_t i = 0; i < kMoreThanFit; ++i) {
    arctrace_enter(2);
    arctrace_exit(2);
  }
  arctrace_control& control = test.view().control();
  IpcAtomics::fetch_add_relaxed(control.taken, uint64_t{1});
  IpcAtomics::fetch_add_relaxed(control.freed, uint64_t{1});
  run_stopping(at, [] { arctrace_enter(kAfterLoss); });
  arctrace_exit(kAfterLoss);
  arctrace_exit(1);
}

TEST_CASE("stopped anywhere: room that comes amid a loss, and the loss is said first") {
  if (!can_single_step()) return testing::skip_case("no process may be stepped here");
  for (const arctrace_scope scope : kScopes) {
    CAPTURE(scope);
    constexpr uint32_t kSomeForDefinitions = 64;
    TestSession test(buffer_in(ARCTRACE_MODE_DROP, scope, kSomeForDefinitions));
    const auto drained = [&](uint64_t) { drain_all(test); };
    stop_everywhere([&](uint64_t, uint64_t at) { write_after_loss(at, test); }, drained,
                    drained);
    const DecodedTrace trace = test.finish();
    CHECK(joined(trace.problems) == "");
    std::set<uint32_t> have_lost;
    uint32_t recorded = 0;
    for (const DecodedBlock& block : trace.blocks) {
      for (const DecodedRecord& record : block.records) {
        if (record.type == ARCTRACE_TYPE_LOST) have_lost.insert(record.writer);
        if (record.type != ARCTRACE_TYPE_ENTER || record.u64(0) != kAfterLoss) continue;
        ++recorded;
        CHECK(have_lost.contains(record.writer));
      }
    }
    CHECK(recorded > 0);
  }
}

// The first record includes joining and definitions.
TEST_CASE("stopped anywhere: in the first record of a process") {
  if (!can_single_step()) return testing::skip_case("no process may be stepped here");
  TestSession test(buffer_in(ARCTRACE_MODE_DROP, ARCTRACE_SCOPE_THREAD));
  Neighbour neighbour(test);
  const uint64_t writers = stop_everywhere(
      [&](uint64_t n, uint64_t at) {
        REQUIRE(arctrace_attach(test.path().c_str()) == 0);
        run_stopping(at, [&] { write_checked(2, n); });
      },
      [&](uint64_t) {
        for (uint32_t i = 0; i < kBatches; ++i) {
          neighbour.write_batch();
          test.drain().round();
        }
      },
      [&](uint64_t) { drain_all(test); });
  neighbour.end();
  const DecodedTrace trace = test.finish();
  CHECK(joined(trace.problems) == "");
  CHECK(numbers_of(trace, 2) == all_below(writers));
  CHECK(numbers_of(trace, Neighbour::kEvent) == all_below(neighbour.written()));
  CHECK(trace.lost() == 0);
}

}  // namespace
}  // namespace arctrace::testing
