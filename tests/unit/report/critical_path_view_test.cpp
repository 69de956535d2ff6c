// The critical path over threads whose times are known exactly.
#include "reader/report/critical_path_view.hpp"

#include <doctest/doctest.h>

#include <map>

#include "tests/support/kernel_script.hpp"
#include "tests/unit/report/viewed.hpp"

using namespace arctrace::reader;
using namespace arctrace::testing;

namespace {

constexpr uint32_t kUninterruptible = 2;

struct PathScript : KernelScript {
  void blocks(uint32_t tid, int64_t time_ns, uint32_t state = 1) {
    add(tid, time_ns, ARCTRACE_TYPE_SWITCH, Bytes().u32(state).u32(0).u32(100));
  }
  void forks(uint32_t tid, int64_t time_ns, uint32_t child) {
    add(tid, time_ns, ARCTRACE_TYPE_FORKED, Bytes().u32(child).u32(child));
  }
  void exits(uint32_t tid, int64_t time_ns) {
    add(tid, time_ns, ARCTRACE_TYPE_EXITED, Bytes().u32(0).u32(0));
  }
  // A thread of a process of its own, from that time on.
  ThreadIndex program_from(uint32_t pid, int64_t time_ns, const std::string& name,
                           uint32_t origin) {
    const ThreadIndex made = script.program(pid, name, origin);
    script.definitions.mutable_thread(made)->start_ns = time_ns;
    script.definitions.mutable_process(script.definitions.threads()[made].process)
        ->start_ns = time_ns;
    task(pid);
    return made;
  }
};

// "100 f running": its time, over all rows of the JSON. The rows add up to the wall time.
using Times = std::map<std::string, uint64_t>;
Times times_of(const PathScript& s, const std::vector<std::string>& of = {},
               const ReplayFilter& filter = {}) {
  Viewed viewed(s.script);
  viewed.settings.functions = of;
  viewed.replay.filter = filter;
  const Json json = viewed.json("critical-path");
  Times times;
  uint64_t sum = 0;
  for (const Json& row : json["critical_path"]) {
    std::string path;
    for (const Json& name : row["path"]) {
      path += (path.empty() ? "" : ">") + name.get<std::string>();
    }
    const uint64_t time = row["ns"];
    times[std::to_string(row["tid"].get<int>()) + " " + path + " " +
          row["state"].get<std::string>()] += time;
    sum += time;
  }
  CHECK(sum == json["wall_ns"]);
  CHECK(json["wall_ns"] ==
        json["stop_ns"].get<int64_t>() - json["start_ns"].get<int64_t>());
  return times;
}

// A thread in "f" from 1000 to 2000, blocked from 1200 to 1700 in `inner`.
PathScript one_wait(const std::string& inner, uint32_t task_state, uint32_t waker,
                    uint32_t context) {
  PathScript s;
  const ThreadIndex thread = s.script.thread(s.process, 100, "first");
  s.task(0);
  s.task(7);
  s.task(100);
  s.script.enter(thread, 1000, "f");
  s.script.enter(thread, 1100, inner);
  s.blocks(100, 1200, task_state);
  s.woken(100, 1700, waker, context);
  s.comes(100, 1700);
  s.script.exit(thread, 1800);
  s.script.exit(thread, 2000);
  return s;
}

std::string state_of_wait(const PathScript& s) {
  for (const auto& [key, time] : times_of(s)) {
    if (time == 500) return key.substr(key.rfind(' ', key.size() - 1) + 1);
  }
  return "";
}

TEST_CASE("critical path: a wait is what the thread that ended it did meanwhile") {
  PathScript s;
  static_cast<KernelScript&>(s) = one_wake_up();
  CHECK(times_of(s) ==
        Times{{"100 f running", 650}, {"100 f preempted", 50}, {"101 g running", 300}});
}

TEST_CASE("critical path: what ended a wait without a thread") {
  constexpr uint32_t kSoft = ARCTRACE_WAKING_INTERRUPT | ARCTRACE_WAKING_SOFTIRQ;
  constexpr uint32_t kVector = 256;
  const auto state = [](const std::string& in, uint32_t task_state, uint32_t waker,
                        uint32_t context) {
    return state_of_wait(one_wait(in, task_state, waker, context));
  };
  CHECK(state("fsync", kUninterruptible | ARCTRACE_SWITCH_IO, 0, kSoft) == "disk");
  CHECK(state("fsync", kUninterruptible | ARCTRACE_SWITCH_IO, 7, 0) == "disk");
  CHECK(state("read", kUninterruptible, 0, kSoft) == "ambiguous");
  CHECK(state("poll", 1, 0, ARCTRACE_WAKING_INTERRUPT | ARCTRACE_WAKING_TIMER) ==
        "timer");
  CHECK(state("poll", 1, 0, kSoft | kVector * (1 + ARCTRACE_SOFTIRQ_TIMER)) == "timer");
  CHECK(state("poll", 1, 0, kSoft | kVector * (1 + ARCTRACE_SOFTIRQ_NET_RECEIVE)) ==
        "network");
  CHECK(state("read", 1, 0, kSoft | kVector * (1 + ARCTRACE_SOFTIRQ_BLOCK)) == "disk");
  // Where the kernel does not record that a timer expired, the function tells it.
  CHECK(state("nanosleep", 1, 0, kSoft) == "timer");
  CHECK(state("poll", 1, 0, kSoft) == "ambiguous");
  // The waker is a thread of a process that is not recorded; with perf there is none.
  CHECK(times_of(one_wait("read", 1, 7, 0)).at("100 f>read not known") == 500);
}

TEST_CASE("critical path: a soft interrupt that the waker raised is the waker's doing") {
  const auto by = [](uint32_t context) {
    PathScript s;
    const ThreadIndex reader = s.script.thread(s.process, 100, "reader");
    const ThreadIndex writer = s.script.thread(s.process, 101, "writer");
    s.task(0);
    s.task(100);
    s.task(101);
    s.script.enter(reader, 1000, "recv");
    s.script.enter(writer, 1000, "send");
    s.blocks(100, 1100);
    s.woken(100, 1600, 101, context);
    s.comes(100, 1600);
    s.script.exit(writer, 1610);
    s.script.exit(reader, 2000);
    return times_of(s);
  };
  constexpr uint32_t kReceive = 256 * (1 + ARCTRACE_SOFTIRQ_NET_RECEIVE);
  CHECK(by(ARCTRACE_WAKING_SOFTIRQ | ARCTRACE_WAKING_RAISED | kReceive) ==
        Times{{"100 recv running", 400}, {"101 send running", 600}});
  CHECK(by(ARCTRACE_WAKING_SOFTIRQ | ARCTRACE_WAKING_INTERRUPT | kReceive) ==
        Times{{"100 recv running", 500}, {"100 recv network", 500}});
}

TEST_CASE("critical path: a thread whose interrupt wakes another one is on the path") {
  PathScript s;
  const ThreadIndex first = s.script.thread(s.process, 100, "first");
  const ThreadIndex second = s.script.thread(s.process, 101, "second");
  s.task(0);
  s.task(100);
  s.task(101);
  s.interrupt_thread(0);
  s.script.enter(first, 1000, "f");
  s.script.enter(second, 1000, "g");
  s.cpu = 1;
  s.leaves(100, 1100, false);
  s.cpu = 0;
  s.interrupt(101, 1250, 80, ARCTRACE_INTERRUPT_SOFT, ARCTRACE_SOFTIRQ_NET_RECEIVE);
  s.woken(100, 1300, 101, KernelScript::kSent);
  s.cpu = 1;
  s.comes(100, 1350);
  s.script.exit(first, 2000);
  s.script.exit(second, 2000);
  CHECK(times_of(s) == Times{{"100 f running", 650},
                             {"100 f preempted", 50},
                             {"101 g>[interrupts] preempted", 50},
                             {"101 g running", 250}});
}

TEST_CASE("critical path: a parent waits for its child, whose time goes back to fork") {
  PathScript s;
  const ThreadIndex parent = s.script.thread(s.process, 100, "parent");
  s.task(0);
  s.task(100);
  const ThreadIndex child = s.program_from(200, 1150, "child", ARCTRACE_ORIGIN_EXEC);
  s.script.enter(parent, 1000, "spawn");
  s.forks(100, 1100, 200);
  s.script.exit(parent, 1110);
  s.script.enter(parent, 1110, "waitpid");
  s.blocks(100, 1120);
  s.script.enter(child, 1150, "work");
  s.script.exit(child, 1450);
  s.exits(200, 1500);
  s.woken(100, 1520, 200);
  s.comes(100, 1530);
  s.script.exit(parent, 1600);
  CHECK(times_of(s) == Times{{"100 waitpid running", 70},
                             {"100 waitpid preempted", 10},
                             {"200  running", 70},  // 50 up to its end, 20 while it ends
                             {"200 work running", 300},
                             {"200  not known", 50},
                             {"100 spawn running", 100}});
  // In the summary each process has a row, with the parts of its time.
  Viewed viewed(s.script);
  Session session;
  session.child_wait_status = 0;
  viewed.settings.session = &session;
  const std::string text = viewed.text("summary");
  CHECK(text.find("child  mostly in work: running 370 ns, not known 50 ns\n") !=
        std::string::npos);
  CHECK(text.find("parent  mostly in spawn: running 170 ns, preempted 10 ns\n") !=
        std::string::npos);
  CHECK(text.find("\n  in all: running 540 ns, preempted 10 ns, not known 50 ns\n") !=
        std::string::npos);
}

// A thread that had called fork at 1090 makes the child at 1100; the child executes a
// program at 1300.
TEST_CASE("critical path: a forked child goes back over exec to the fork") {
  PathScript s;
  const ThreadIndex parent = s.script.thread(s.process, 100, "parent");
  s.task(0);
  s.task(100);
  const ThreadIndex child = s.program_from(200, 1150, "sh", ARCTRACE_ORIGIN_FORK);
  Process& forked = *s.script.definitions.mutable_process(
      s.script.definitions.threads()[child].process);
  forked.parent_id = s.script.definitions.processes()[s.process].id;
  forked.forked_ns = 1090;
  forked.end_ns = 1250;
  forked.end_how = ARCTRACE_END_EXEC;
  const ThreadIndex after = s.program_from(200, 1400, "true", ARCTRACE_ORIGIN_EXEC);
  s.script.definitions.mutable_process(s.script.definitions.threads()[after].process)
      ->exec_ns = 1300;
  s.script.enter(parent, 1000, "spawn");
  s.forks(100, 1100, 200);
  s.script.exit(parent, 1110);
  s.script.enter(parent, 1110, "waitpid");
  s.blocks(100, 1120);
  s.comes(200, 1130);
  s.script.enter(child, 1150, "execve");
  s.add(200, 1300, ARCTRACE_TYPE_EXECED, Bytes().fill(16, 0));
  s.script.enter(after, 1400, "main");
  s.script.exit(after, 1450);
  s.woken(100, 1500, 200);
  s.comes(100, 1500);
  s.script.exit(parent, 1600);
  const Times times = times_of(s);
  for (const auto& row : times) {
    CHECK_MESSAGE(row.first.find("not known") == std::string::npos, row.first);
  }
  CHECK(times.at("200 main running") == 50);
  CHECK(times.at("100 spawn running") == 100);
}

TEST_CASE("critical path: a thread lasts until it leaves its CPU for good") {
  constexpr uint32_t kDead = 0x80;
  PathScript s;
  const ThreadIndex parent = s.script.thread(s.process, 100, "parent");
  s.task(0);
  s.task(100);
  const ThreadIndex child = s.program_from(200, 1150, "child", ARCTRACE_ORIGIN_EXEC);
  s.script.enter(parent, 1000, "waitpid");
  s.blocks(100, 1020);
  s.script.enter(child, 1150, "work");
  s.script.exit(child, 1400);
  s.exits(200, 1500);
  s.leaves(200, 1520, true);
  s.comes(200, 1600);
  s.woken(100, 1640, 200);
  s.blocks(200, 1650, kDead);
  s.comes(100, 1700);
  s.comes(200, 1800);  // another thread has the number now
  s.script.exit(parent, 1900);
  const Times times = times_of(s);
  CHECK(times.at("200 work running") == 250);
  CHECK(times.at("200  running") == 160);
  CHECK(times.at("200  preempted") == 80);
  CHECK(times.at("100 waitpid preempted") == 60);
  Viewed viewed(s.script);
  viewed.settings.options.sort = SortKey::kEntry;
  const Json threads = viewed.json("threads");
  for (const Json& thread : threads["threads"]) {
    if (thread["tid"] != 200) continue;
    CHECK(thread["running_ns"] == 420);
    CHECK(thread["ready_ns"] == 80);
    CHECK(thread["blocked_ns"] == 0);
  }
}

TEST_CASE("critical path: a program goes on from the one that executed it") {
  PathScript s;
  s.task(0);
  const ThreadIndex before = s.program_from(300, 1000, "sh", ARCTRACE_ORIGIN_FORK);
  const ThreadIndex after = s.program_from(300, 1500, "cc", ARCTRACE_ORIGIN_EXEC);
  s.script.definitions.mutable_process(s.script.definitions.threads()[after].process)
      ->exec_ns = 1400;
  s.script.enter(before, 1000, "execve");
  s.add(300, 1400, ARCTRACE_TYPE_EXECED, Bytes().fill(16, 0));
  s.script.enter(after, 1500, "main");
  s.script.exit(after, 2000);
  CHECK(times_of(s) == Times{{"300 main running", 500},
                             {"300 [loader] running", 100},
                             {"300 execve running", 400}});
}

TEST_CASE("critical path: a convoy of locks is the holders' time in turn") {
  PathScript s;
  s.task(0);
  std::vector<ThreadIndex> threads;
  for (uint32_t i = 0; i < 3; ++i) {
    threads.push_back(s.script.thread(s.process, 100 + i, ""));
    s.task(100 + i);
    s.script.enter(threads[i], 1000, "lock");
  }
  s.blocks(101, 1010);
  s.blocks(102, 1020);
  s.script.exit(threads[0], 1020);
  s.script.enter(threads[0], 1020, "hold");
  s.woken(101, 1300, 100);
  s.comes(101, 1310);
  s.script.exit(threads[0], 1320);
  s.exits(100, 1330);
  s.woken(102, 1700, 101);
  s.comes(102, 1705);
  s.script.exit(threads[1], 1710);
  s.exits(101, 1720);
  s.script.exit(threads[2], 2000);
  CHECK(times_of(s) == Times{{"102 lock running", 295},
                             {"102 lock preempted", 5},
                             {"101 lock running", 390},
                             {"101 lock preempted", 10},
                             {"100 hold running", 280},
                             {"100 lock running", 20}});
}

// The states are those of the critical path; where that continues in another thread, the
// cause is "thread".
TEST_CASE("slowest: in which states slow calls take longer than the median") {
  PathScript s;
  const ThreadIndex thread = s.script.thread(s.process, 100, "first");
  const ThreadIndex other = s.script.thread(s.process, 101, "second");
  for (const uint32_t task : {0U, 7U, 100U, 101U}) s.task(task);
  s.script.enter(other, 500, "main");
  for (int64_t i = 0; i < 20; ++i) {
    s.script.enter(thread, 1000 + 100 * i, "f");
    s.script.exit(thread, 1050 + 100 * i);
  }
  s.script.enter(thread, 10000, "f");
  s.script.enter(thread, 10010, "read");
  s.blocks(100, 10100, kUninterruptible | ARCTRACE_SWITCH_IO);
  s.woken(100, 11100, 7, ARCTRACE_WAKING_INTERRUPT);
  s.comes(100, 11300);
  s.script.exit(thread, 11300);
  s.blocks(100, 11400, 1);
  s.woken(100, 11900, 101, 0);
  s.comes(100, 11900);
  s.script.exit(thread, 12000);
  Viewed viewed(s.script);
  viewed.settings.functions = {"f"};
  const Json why = viewed.json("slowest").at("why");
  REQUIRE(why.size() == 1);
  CHECK(why[0]["slow_calls"] == 1);
  CHECK(why[0]["slow_ns"] == 2000);
  CHECK(why[0]["median_calls"] == 20);
  CHECK(why[0]["median_ns"] == 1000);
  std::map<std::string, int64_t> more;
  for (const Json& cause : why[0]["causes"]) {
    more[cause["path"].dump() + " " + cause["state"].get<std::string>()] =
        cause["more_ns"].get<int64_t>();
  }
  const std::map<std::string, int64_t> expected = {{"[\"read\"] disk", 1000},
                                                   {"[\"read\"] preempted", 200},
                                                   {"[\"read\"] running", 90},
                                                   {"[] running", 160},
                                                   {"[] thread", 500}};
  CHECK(more == expected);
  CHECK(viewed.text("slowest").find(R"(
Why f is slow: the slowest call of 21, by wall-clock time, takes 2.00 us, the median 50 ns
  disk + 1.00 us, thread + 500 ns, running + 250 ns, preempted + 200 ns
           More  State      Path in it
      + 1.00 us  disk       read
       + 500 ns  thread     f itself
       + 200 ns  preempted  read
       + 160 ns  running    f itself
        + 90 ns  running    read
)") != std::string::npos);
}

TEST_CASE("slowest: what the tracer does in a call is no cause, and none of its time") {
  PathScript s;
  const ThreadIndex thread = s.script.thread(s.process, 100, "first");
  for (const uint32_t task : {0U, 7U, 100U}) s.task(task);
  for (int64_t i = 0; i < 20; ++i) {
    s.script.enter(thread, 1000 + 100 * i, "f");
    s.script.exit(thread, 1050 + 100 * i);
  }
  s.script.enter(thread, 10000, "f");
  s.script.enter(thread, 10100, "[arctrace]");
  s.blocks(100, 10200, 1);
  s.woken(100, 11000, 7, 0);
  s.comes(100, 11000);
  s.script.exit(thread, 11100);
  s.script.exit(thread, 11500);
  Viewed viewed(s.script);
  viewed.settings.functions = {"f"};
  const Json json = viewed.json("slowest");
  CHECK(json.at("slowest").at(0).at("delta_ns") == 500);
  CHECK(json.at("slowest").at(0).at("off_cpu_ns") == 0);
  const Json causes = json.at("why").at(0).at("causes");
  REQUIRE(causes.size() == 1);
  CHECK(causes[0]["path"].empty());
  CHECK(causes[0]["state"] == "running");
  CHECK(causes[0]["more_ns"] == 450);
}

TEST_CASE("critical path: of the slowest call, and of a time range") {
  PathScript s = one_wait("nanosleep", 1, 0, ARCTRACE_WAKING_INTERRUPT);
  CHECK(times_of(s, {"nano*"}) ==
        Times{{"100 f>nanosleep running", 200}, {"100 f>nanosleep timer", 500}});
  ReplayFilter range;
  range.from_ns = 1150;
  range.until_ns = 1250;
  CHECK(times_of(s, {}, range) ==
        Times{{"100 f>nanosleep running", 50}, {"100 f>nanosleep timer", 50}});
}

TEST_CASE("critical path: threads that seem to wake each other end the walk") {
  PathScript s;
  const ThreadIndex a = s.script.thread(s.process, 100, "a");
  const ThreadIndex b = s.script.thread(s.process, 101, "b");
  s.task(0);
  s.task(100);
  s.task(101);
  s.script.enter(a, 1000, "f");
  s.script.enter(b, 1000, "g");
  s.blocks(100, 1100);
  s.blocks(101, 1100);
  s.woken(100, 1500, 101);
  s.woken(101, 1500, 100);
  s.comes(100, 1600);
  s.script.exit(a, 2000);
  uint64_t sum = 0;
  for (const auto& [key, time] : times_of(s)) sum += time;
  CHECK(sum == 1000);
}

TEST_CASE("critical path: text has the states and what is too small in one row") {
  const PathScript s = one_wait("nanosleep", 1, 0, ARCTRACE_WAKING_INTERRUPT);
  Viewed viewed(s.script);
  const std::string text = viewed.text("critical-path");
  CHECK(text.find("running 500 ns, timer 500 ns") != std::string::npos);
  CHECK(text.find("f > nanosleep") != std::string::npos);
  viewed.settings.options.limit = 1;
  CHECK(viewed.text("critical-path").find("others, 2 rows") != std::string::npos);
}

}  // namespace
