// Threads that wait for work, though they hardly ever have to wait.
#include "reader/analysis/work_loops.hpp"

#include <doctest/doctest.h>

#include <functional>
#include <string>
#include <vector>

#include "tests/support/kernel_script.hpp"

using namespace arctrace::reader;
using namespace arctrace::testing;

namespace {

constexpr int kRounds = 500;

// The calls of one thread: `round` is repeated, and its first call waits in the first
// repetition.
struct Program {
  std::vector<std::string> before;
  std::vector<std::string> round;
  uint32_t context = KernelScript::kSent;  // of the wake-up
  int waits_in = 0;                        // that repetition
  bool waits = true;
};

// The result for the script's records. The loops' histograms are gone afterwards.
Serving found_in(KernelScript& s) {
  WorkLoops loops;
  ReplayOptions options;
  options.listener = &loops;
  options.schedule = &loops;
  Replay replay(s.script.definitions, nullptr, options);
  loops.begin(replay, nullptr);
  s.script.replay(replay);
  return loops.find();
}

// The result for a program. With `taken_down_ns`, a second thread waits in one call until
// the program ends, and then is on a CPU for so long. With `task_state`, which is the
// kernel's, the thread was blocked some times before in that state.
Serving serving(const Program& program, int64_t taken_down_ns = 0,
                uint32_t task_state = 0) {
  KernelScript s;
  const ThreadIndex second = s.script.thread(s.process, 101, "second");
  int64_t time_ns = 1000;
  if (taken_down_ns != 0) {
    s.task(101);
    s.script.enter(second, time_ns, "take");
    for (int i = 0; task_state != 0 && i < 30; ++i) {
      s.add(101, time_ns += 10, ARCTRACE_TYPE_SWITCH,
            Bytes().u32(task_state).u32(0).u32(100));
      s.woken(101, time_ns += 5000);
      s.comes(101, time_ns += 10);
    }
    s.leaves(101, time_ns += 10, false);
  }
  const ThreadIndex thread = s.script.thread(s.process, 100, "program");
  s.task(0);
  s.task(100);
  s.script.enter(thread, time_ns, "main");
  const auto call = [&](const std::string& name, bool waits) {
    s.script.enter(thread, time_ns += 10, name);
    if (waits) {
      s.leaves(100, time_ns += 10, false);
      s.woken_from_outside(100, time_ns += 900, program.context);
      s.comes(100, time_ns += 10);
    }
    s.script.exit(thread, time_ns += 10);
  };
  for (const std::string& name : program.before) call(name, false);
  for (int round = 0; round < kRounds; ++round) {
    for (const std::string& name : program.round) {
      const bool is_first = &name == &program.round.front();
      call(name, program.waits && is_first && round == program.waits_in);
    }
  }
  s.script.exit(thread, time_ns += 10);
  if (taken_down_ns != 0) {
    s.script.definitions.mutable_process(s.process)->end_ns = time_ns;
    s.woken(101, time_ns += 10);
    s.comes(101, time_ns += 10);
    s.leaves(101, time_ns += taken_down_ns, true);
  }
  return found_in(s);
}

}  // namespace

TEST_CASE("work loops: a server that always finds work had to wait for it once") {
  const Program server = {{"socket", "bind"}, {"take", "read", "compute", "write"}};
  const Serving found = serving(server);
  REQUIRE(found.loops.size() == 1);
  CHECK(found.is_server);
  const WorkLoop& loop = found.loops.front();
  CHECK(loop.is_from_outside);
  CHECK(loop.calls == kRounds);
  CHECK(loop.waits == 1);
  CHECK(loop.no_work_ns == 900);
  // The thread had so much to do at first that it did not have to wait.
  Program late = server;
  late.waits_in = 10;
  CHECK(serving(late).is_server);
}

TEST_CASE("work loops: a thread that sleeps until its process is taken down") {
  const Program server = {{"socket", "bind"}, {"take", "read", "compute", "write"}};
  CHECK(serving(server).sleepers.empty());
  const Serving found = serving(server, 30'000);
  CHECK(found.is_server);
  CHECK(found.sleepers.size() == 1);
}

TEST_CASE("work loops: a thread that arctrace stopped as it joined is a sleeper, too") {
  constexpr uint32_t kInterruptible = 1, kTraced = 8;
  const Program server = {{"socket", "bind"}, {"take", "read", "compute", "write"}};
  CHECK(serving(server, 30'000, kTraced).sleepers.size() == 1);
  CHECK(serving(server, 30'000, kInterruptible).sleepers.empty());
}

TEST_CASE("work loops: what is done again and again without waiting, and is no service") {
  const std::vector<std::string> round = {"take", "read", "compute", "write"};
  // These are a loop over files; a file that is not there yet; the middle of a pipeline.
  CHECK(serving({{}, round, 0, 0, false}).loops.empty());
  CHECK(serving({{}, round, 0}).loops.empty());
  CHECK(serving({{}, round, ARCTRACE_WAKING_SOFTIRQ | 2 << 8}).loops.empty());
  // The thread reads requests, and writes nothing; its calls for I/O are not known.
  CHECK(serving({{}, {"take", "read", "compute"}}).loops.empty());
  CHECK(serving({{}, {"take", "compute"}}).loops.empty());
  // The thread waits in the call that receives.
  CHECK(serving({{}, {"read", "compute", "write"}}).loops.empty());
}

TEST_CASE("work loops: whoever asks, and always has an answer") {
  CHECK(serving({{"connect"}, {"take", "read", "write"}}).loops.empty());
  CHECK(serving({{"write"}, {"take", "read", "write"}}).loops.empty());
  // A thread that logs its work is not a client.
  CHECK(serving({{"write"}, {"take", "read", "send", "write"}}).loops.size() == 1);
  CHECK(serving({{"write", "listen"}, {"take", "read", "write"}}).loops.size() == 1);
}

namespace {

// How many loops are found where a thread computes and gives the result to another one,
// which waits for it, again and again. Of each 1,000 ns it is without a CPU for
// `ready_ns`, and blocked for `blocked_ns`. The other one waits in `waits_in`.
size_t loops_of_one_that_is_given(int64_t ready_ns, int64_t blocked_ns,
                                  const std::string& waits_in = "take") {
  KernelScript s;
  const ThreadIndex first = s.script.thread(s.process, 100, "waits");
  const ThreadIndex second = s.script.thread(s.process, 101, "computes");
  for (const uint32_t tid : {0u, 100u, 101u}) s.task(tid);
  int64_t time_ns = 1000;
  s.script.enter(first, time_ns, "main");
  s.script.enter(second, time_ns, "compute");
  for (int round = 0; round < 50; ++round, time_ns += 1000) {
    s.script.enter(first, time_ns, waits_in);
    s.leaves(100, time_ns, false);
    if (ready_ns != 0) {
      s.leaves(101, time_ns + 10, true);
      s.comes(101, time_ns + 10 + ready_ns);
    }
    if (blocked_ns != 0) {
      s.leaves(101, time_ns + 10, false);
      s.woken_from_outside(101, time_ns + 10 + blocked_ns);
      s.comes(101, time_ns + 10 + blocked_ns);
    }
    s.woken(100, time_ns + 990, 101);
    s.comes(100, time_ns + 990);
    s.script.exit(first, time_ns + 995);
  }
  s.script.exit(first, time_ns);
  s.script.exit(second, time_ns);
  return found_in(s).loops.size();
}

}  // namespace

TEST_CASE("work loops: whoever waits for what another thread computes") {
  CHECK(loops_of_one_that_is_given(0, 0) == 0);
  // Computing takes longer on a busy machine.
  CHECK(loops_of_one_that_is_given(940, 0) == 0);
  // The computing thread waits itself here.
  CHECK(loops_of_one_that_is_given(0, 940) == 1);
}

TEST_CASE("work loops: whoever waits for the ends of threads or processes") {
  for (const char* function : {"pthread_join", "pthread_timedjoin_np", "thrd_join",
                               "std::thread::join()", "waitpid"}) {
    CAPTURE(function);
    CHECK(loops_of_one_that_is_given(0, 940, function) == 0);
  }
}
