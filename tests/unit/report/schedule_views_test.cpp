// The views of what the kernel recorded: threads and wakers, and CPU time in the others.
#include <doctest/doctest.h>

#include "reader/report/views.hpp"
#include "tests/support/kernel_script.hpp"
#include "tests/unit/report/viewed.hpp"

using namespace arctrace::reader;
using namespace arctrace::testing;

namespace {

// Thread 100 waits twice in f; 101 wakes it out of g > K:write, then an interrupt does.
KernelScript two_threads() {
  KernelScript s;
  const ThreadIndex first = s.script.thread(s.process, 100, "first");
  const ThreadIndex second = s.script.thread(s.process, 101, "second");
  s.task(0);
  s.task(100);
  s.task(101);
  s.script.enter(first, 1000, "f");
  s.script.enter(second, 1000, "g");
  s.leaves(100, 1100, false);
  s.syscall(101, 1150, 1);
  s.woken(100, 1300, 101);
  s.syscall_end(101, 1310);
  s.comes(100, 1350);
  s.leaves(100, 1400, true);
  s.comes(100, 1460);
  s.leaves(100, 1500, false);
  s.woken(100, 1600, 0);
  s.comes(100, 1610);
  s.script.exit(first, 2000);
  s.script.exit(second, 2000);
  return s;
}

// A view of the script, sorted and limited.
struct Scheduled {
  Scheduled(const KernelScript& s, const char* view, const ViewOptions& options,
            ReplayFilter filter = {})
      : name(view), viewed(s.script) {
    viewed.settings.options = options;
    viewed.replay.filter = std::move(filter);
  }
  std::string text() { return viewed.text(name); }
  Json json() { return viewed.json(name); }

  const char* name;
  Viewed viewed;
};

ViewOptions sorted(SortKey sort, uint64_t limit = UINT64_MAX) {
  ViewOptions options;
  options.sort = sort;
  options.limit = limit;
  return options;
}

}  // namespace

TEST_CASE("threads: each stretch with where it was and what ended it") {
  const KernelScript s = two_threads();
  Scheduled viewed(s, "threads", sorted(SortKey::kEntry));
  const Json json = viewed.json();
  REQUIRE(json["threads"].size() == 2);
  const Json& first = json["threads"][0];
  CHECK(first["tid"] == 100);
  CHECK(first["name"] == "first");
  CHECK(first["running_ns"] == 580);
  CHECK(first["ready_ns"] == 120);
  CHECK(first["preempted_ns"] == 60);
  CHECK(first["blocked_ns"] == 300);
  REQUIRE(first["states"].size() == 9);
  CHECK(first["states"][1] == Json::parse(R"({"start_ns": 1100, "duration_ns": 200,
      "state": "blocked", "task_state": 1, "path": ["f"], "waker_pid": 100,
      "waker_tid": 101, "waker_path": ["g", "K:write"]})"));
  CHECK(first["states"][2] == Json::parse(R"({"start_ns": 1300, "duration_ns": 50,
      "state": "ready", "reason": "woken", "path": ["f"]})"));
  CHECK(first["states"][4]["reason"] == "preempted");
  CHECK(first["states"][6]["from_interrupt"] == true);
  CHECK(json["threads"][1]["states"].size() == 1);

  const std::string text = viewed.text();
  CHECK(text.find(
            "first 100/100: running 580 ns (58.0 %), ready 120 ns (12.0 %), of which "
            "preempted 60 ns (6.0 %), blocked 300 ns (30.0 %)\n") != std::string::npos);
  CHECK(text.find("blocked             f; woken by second 100/101 in g > K:write\n") !=
        std::string::npos);
  CHECK(text.find("ready, preempted    f\n") != std::string::npos);
  CHECK(text.find("woken by an interrupt of ") != std::string::npos);
}

TEST_CASE("threads: the tracer's own work is told, which is in the thread's states") {
  KernelScript s;
  const ThreadIndex first = s.script.thread(s.process, 100, "first");
  const ThreadIndex second = s.script.thread(s.process, 101, "second");
  s.script.enter(first, 1000, "[arctrace]");
  s.script.exit(first, 1300);
  s.script.enter(second, 1000, "f");
  s.script.exit(second, 2000);
  s.leaves(100, 2000, false);
  Scheduled viewed(s, "threads", sorted(SortKey::kEntry));
  const Json json = viewed.json();
  CHECK(json["threads"][0]["running_ns"] == 1000);
  CHECK(json["threads"][0]["arctrace_ns"] == 300);
  CHECK_FALSE(json["threads"][1].contains("arctrace_ns"));
  const std::string text = viewed.text();
  const std::string word = "; 300 ns of this is arctrace's own work";
  CHECK(text.find(word) != std::string::npos);
  CHECK(text.rfind(word) == text.find(word));
}

TEST_CASE("threads and wakers: what seems to be an interrupt may be a fault") {
  const auto texts = [](uint32_t context) {
    KernelScript s;
    const ThreadIndex first = s.script.thread(s.process, 100, "first");
    const ThreadIndex second = s.script.thread(s.process, 101, "second");
    for (const uint32_t tid : {0u, 100u, 101u}) s.task(tid);
    s.script.enter(first, 1000, "f");
    s.script.enter(second, 1000, "g");
    s.leaves(100, 1100, false);
    s.woken(100, 1300, 101, context);
    s.comes(100, 1350);
    s.script.exit(first, 2000);
    s.script.exit(second, 2000);
    return Scheduled(s, "threads", sorted(SortKey::kEntry)).text() +
           Scheduled(s, "wakers", sorted(SortKey::kTotal)).text();
  };
  constexpr uint32_t kAny = ARCTRACE_WAKING_INTERRUPT | ARCTRACE_WAKING_SOFTIRQ;
  std::string text = texts(kAny);
  CHECK(text.find("f; woken by an interrupt or a fault of second 100/101\n") !=
        std::string::npos);
  CHECK(text.find("  Interrupt or fault over second 100/101\n") != std::string::npos);
  for (const uint32_t context :
       {kAny | ARCTRACE_SOFTIRQ_BLOCK << 8,
        uint32_t{ARCTRACE_WAKING_INTERRUPT | ARCTRACE_WAKING_TIMER}}) {
    text = texts(context);
    CHECK(text.find("f; woken by an interrupt of second 100/101\n") != std::string::npos);
    CHECK(text.find("  Interrupt over second 100/101\n") != std::string::npos);
  }
}

TEST_CASE("threads: a thread whose CPU serves an interrupt is ready") {
  KernelScript s;
  const ThreadIndex thread = s.script.thread(s.process, 100, "first");
  s.interrupt_thread(0);
  s.script.enter(thread, 1000, "f");
  s.interrupt(100, 1100, 200, ARCTRACE_INTERRUPT_CPU, ARCTRACE_CPU_TIMER);
  s.leaves(100, 1400, true);
  s.comes(100, 1500);
  s.script.exit(thread, 2000);
  Scheduled viewed(s, "threads", sorted(SortKey::kEntry));
  const Json json = viewed.json();
  REQUIRE(json["threads"].size() == 1);
  const Json& first = json["threads"][0];
  CHECK(first["running_ns"] == 700);
  CHECK(first["ready_ns"] == 300);
  CHECK(first["preempted_ns"] == 100);
  CHECK(first["interrupted_ns"] == 200);
  CHECK(first["states"][1] == Json::parse(R"({"start_ns": 1100, "duration_ns": 200,
      "state": "ready", "reason": "interrupted", "path": ["f"]})"));
  const std::string text = viewed.text();
  CHECK(text.find("of which preempted 100 ns (10.0 %), interrupted 200 ns (20.0 %), "
                  "blocked -") != std::string::npos);
  CHECK(text.find("ready, interrupted  f\n") != std::string::npos);
}

TEST_CASE("threads: perf events do not show when a thread was woken") {
  KernelScript s;
  const ThreadIndex thread = s.script.thread(s.process, 100, "first");
  s.script.enter(thread, 1000, "f");
  s.leaves_by_perf(100, 1100, false);
  s.comes_by_perf(100, 1400);
  s.leaves_by_perf(100, 1500, true);
  s.comes_by_perf(100, 1600);
  s.script.exit(thread, 2000);
  Scheduled scheduled(s, "threads", sorted(SortKey::kEntry));
  scheduled.viewed.replay.has_wake_ups = false;
  const Json json = scheduled.json();
  const Json& first = json["threads"][0];
  CHECK_FALSE(first.contains("ready_ns"));
  CHECK(first["running_ns"] == 600);
  CHECK(first["preempted_ns"] == 100);
  CHECK(first["blocked_ns"] == 300);
  CHECK(first["states"][1] == Json::parse(R"({"start_ns": 1100, "duration_ns": 300,
      "state": "blocked", "path": ["f"]})"));
  CHECK(first["states"][3]["reason"] == "preempted");
  const std::string text = scheduled.text();
  CHECK(text.find("first 100/100: running 600 ns (60.0 %), preempted 100 ns (10.0 %), "
                  "blocked or woken 300 ns (30.0 %)\n") != std::string::npos);
  const Json flat = scheduled.viewed.json("flat");
  CHECK(flat["functions"][0]["off_cpu_ns"] == 400);
  CHECK_FALSE(flat["functions"][0].contains("ready_ns"));
}

TEST_CASE("threads: a limit leaves rows out, the last ones or the shortest") {
  const KernelScript s = two_threads();
  Scheduled by_time(s, "threads", sorted(SortKey::kEntry, 2));
  CHECK(by_time.json()["threads"][0]["states"][1]["start_ns"] == 1100);
  CHECK(by_time.json()["threads"][0]["states"].size() == 2);
  CHECK(by_time.text().find("(7 rows not shown)") != std::string::npos);
  Scheduled longest(s, "threads", sorted(SortKey::kTotal, 2));
  const Json json = longest.json();
  CHECK(json["threads"][0]["states"][0]["duration_ns"] == 390);
  CHECK(json["threads"][0]["states"][1]["duration_ns"] == 200);
  CHECK(json["threads"][0]["running_ns"] == 580);
  CHECK(longest.text().find("(7 rows not shown)") != std::string::npos);
}

TEST_CASE("threads: a time range cuts the stretches") {
  const KernelScript s = two_threads();
  ReplayFilter filter;
  filter.from_ns = 1200;
  filter.until_ns = 1320;
  Scheduled viewed(s, "threads", sorted(SortKey::kEntry), filter);
  const Json json = viewed.json();
  const Json& first = json["threads"][0];
  CHECK(first["blocked_ns"] == 100);
  CHECK(first["ready_ns"] == 20);
  CHECK(first["running_ns"] == 0);
}

TEST_CASE("wakers: wake-ups by the frames of both, the longest wait first") {
  const KernelScript s = two_threads();
  Scheduled viewed(s, "wakers", sorted(SortKey::kTotal));
  const Json json = viewed.json();
  REQUIRE(json["wakers"].size() == 2);
  CHECK(json["wakers"][0] == Json::parse(R"({"wake_ups": 1, "blocked_ns": 200,
      "from_interrupt": false,
      "waker": {"pid": 100, "tid": 101, "name": "second", "path": ["g", "K:write"]},
      "woken": {"pid": 100, "tid": 100, "name": "first", "path": ["f"]}})"));
  CHECK(json["wakers"][1]["from_interrupt"] == true);
  CHECK(json["wakers"][1]["blocked_ns"] == 100);
  CHECK(viewed.text().find("           1       200 ns  second 100/101: g > K:write\n"
                           "                           -> first 100/100: f\n") !=
        std::string::npos);
  Scheduled one(s, "wakers", sorted(SortKey::kTotal, 1));
  CHECK(one.json()["wakers"].size() == 1);
  CHECK(one.text().find("(1 row not shown)") != std::string::npos);
}

TEST_CASE("time on and off the CPU stands in arcs, invocations and flow, too") {
  const KernelScript s = two_threads();
  Viewed viewed(s.script);
  const Json arcs = viewed.json("arcs");
  for (const Json& arc : arcs["arcs"]) {
    if (arc["name"] != "f") continue;
    CHECK(arc["off_cpu_ns"] == 420);
    CHECK(arc["parents"][0]["off_cpu_ns"] == 420);
    CHECK(arc["parents"][0]["cpu_ns"] == 580);
  }
  const std::string text = viewed.text("arcs");
  CHECK(text.find("On CPU      Blocked       No CPU") != std::string::npos);

  viewed.settings.options = sorted(SortKey::kEntry);
  const Json calls = viewed.json("invocations");
  CHECK(calls["invocations"][0]["name"] == "f");
  CHECK(calls["invocations"][0]["delta_ns"] == 1000);
  CHECK(calls["invocations"][0]["cpu_ns"] == 580);
  CHECK(calls["invocations"][0]["ready_ns"] == 120);
  CHECK(calls["invocations"][0]["switches"] == 3);
  CHECK(calls["invocations"][2]["name"] == "K:write");
  CHECK(calls["invocations"][2]["off_cpu_ns"] == 0);
}
