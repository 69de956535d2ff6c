// The stretches in which a thread's state is known, which are the same in all views
// (SPEC.md READ-9).
#include <doctest/doctest.h>

#include <string>

#include "tests/support/kernel_script.hpp"
#include "tests/unit/report/viewed.hpp"

using namespace arctrace::reader;
using namespace arctrace::testing;

namespace {

ViewOptions in_order_of_time() {
  ViewOptions options;
  options.sort = SortKey::kEntry;
  options.limit = UINT64_MAX;
  return options;
}

Json view_of(const KernelScript& s, const char* view, const ReplayOptions& options = {}) {
  Viewed viewed(s.script);
  viewed.settings.options = in_order_of_time();
  viewed.replay = options;
  return viewed.json(view);
}

// The states of the thread with that number: "running 1000-1100, not known 1100-1300
// ...". Their sums are those of its rows, and add up to its time in `threads`.
std::string states_of(const KernelScript& s, uint32_t tid,
                      const ReplayOptions& options = {}) {
  const Json json = view_of(s, "threads", options);
  for (const Json& thread : json["threads"]) {
    if (thread["tid"] != tid) continue;
    std::string text;
    uint64_t sums[4] = {};
    const std::string names[4] = {"running", "ready", "blocked", "not known"};
    for (const Json& row : thread["states"]) {
      const std::string name = row["state"];
      const int64_t start = row["start_ns"], length = row["duration_ns"];
      text += (text.empty() ? "" : ", ") + name + " " + std::to_string(start) + "-" +
              std::to_string(start + length);
      for (int i = 0; i < 4; ++i) {
        if (name == names[i]) sums[i] += static_cast<uint64_t>(length);
      }
    }
    CHECK(sums[0] == thread["running_ns"]);
    CHECK(sums[1] == thread["ready_ns"]);
    CHECK(sums[2] == thread["blocked_ns"]);
    CHECK(sums[3] == thread.value("not_known_ns", uint64_t{0}));
    return text;
  }
  return "no such thread";
}

// Thread 100 runs in f from 1000, waits from 1100, and has a CPU again at 1700, up to
// 2000. The kernel's records are missing from 1200 to 1600.
KernelScript one_gap() {
  KernelScript s;
  const ThreadIndex thread = s.script.thread(s.process, 100, "first");
  s.task(0);
  s.task(100);
  s.kernel_gap(1200, 1600);
  s.script.enter(thread, 1000, "f");
  s.leaves(100, 1100, false);
  s.comes(100, 1700);
  s.script.exit(thread, 2000);
  return s;
}

}  // namespace

TEST_CASE("a state is not known from a gap's beginning to the thread's next record") {
  CHECK(states_of(one_gap(), 100) ==
        "running 1000-1100, blocked 1100-1200, not known 1200-1700, running 1700-2000");
}

// If a thread's time on a CPU is not known, calls may have had all of it.
TEST_CASE("what recording cost is a share of the time that may have been on the CPU") {
  KernelScript s;
  const ThreadIndex thread = s.script.thread(s.process, 100, "first");
  s.task(0);
  s.task(100);
  s.kernel_gap(1000, 90'000);
  for (int64_t i = 0; i < 20; ++i) {
    s.script.enter(thread, 1000 + 1000 * i, "f");
    s.script.exit(thread, 1500 + 1000 * i);
  }
  s.comes(100, 100'000);
  s.script.enter(thread, 100'000, "f");
  s.script.exit(thread, 101'000);
  Viewed viewed(s.script);
  const arctrace_hook_cost cost = {ARCTRACE_HOOK_API, 50'000, 50'000};
  viewed.replay.hook_costs = {&cost, 1};
  const std::string text = viewed.text("summary");
  CHECK(text.find(
            "recording cost about 2.10 us of 100 us on the CPU, or not known (2 %)") !=
        std::string::npos);
  const arctrace_hook_cost less = {ARCTRACE_HOOK_API, 5'000, 5'000};
  viewed.replay.hook_costs = {&less, 1};
  CHECK(viewed.text("summary").find(
            "recording cost less than 1 % of the time on the CPU, or not known\n") !=
        std::string::npos);
  const KernelScript known = one_server();
  Viewed viewed_known(known.script);
  const arctrace_hook_cost least = {ARCTRACE_HOOK_API, 100, 100};
  viewed_known.replay.hook_costs = {&least, 1};
  CHECK(viewed_known.text("summary").find(
            "recording cost less than 1 % of the time on the CPU\n") !=
        std::string::npos);
}

// Not every kernel records every switch, though nothing is lost.
TEST_CASE("a thread that forks runs, in all views, whoever saw it get a CPU") {
  KernelScript s;
  const ThreadIndex parent = s.script.thread(s.process, 100, "parent");
  s.task(0);
  s.task(100);
  s.script.enter(parent, 1000, "fork");
  s.leaves(100, 1100, true);
  s.add(100, 1300, ARCTRACE_TYPE_FORKED, Bytes().u32(200).u32(200));
  s.script.exit(parent, 1350);
  CHECK(states_of(s, 100) == "running 1000-1100, ready 1100-1300, running 1300-1350");
  CHECK(view_of(s, "tree")["threads"][0]["root"]["cpu_ns"] == 150);
  CHECK(view_of(s, "flat")["functions"][0]["cpu_ns"] == 150);
}

TEST_CASE("all views have the same sums of what is not known") {
  const KernelScript s = one_gap();
  const Json f = view_of(s, "flat")["functions"][0];
  CHECK(f["cpu_ns"] == 400);
  CHECK(f["off_cpu_ns"] == 100);
  CHECK(f["not_known_ns"] == 500);
  CHECK(f["cum_ns"] == 1000);
  CHECK(f["marks"]["not_known_ns"] == 500);
  const Json call = view_of(s, "invocations")["invocations"][0];
  CHECK(call["cpu_ns"] == 400);
  CHECK(call["off_cpu_ns"] == 100);
  CHECK(call["not_known_ns"] == 500);
  const Json root = view_of(s, "tree")["threads"][0]["root"];
  CHECK(root["not_known_ns"] == 500);
  const Json summary = view_of(s, "summary");
  CHECK(summary["cpu_ns"] == 400);
  CHECK(summary["off_cpu_ns"] == 100);
  CHECK(summary["not_known_ns"] == 500);
  uint64_t not_known = 0, all = 0;
  const Json path = view_of(s, "critical-path");
  for (const Json& row : path["critical_path"]) {
    all += row["ns"].get<uint64_t>();
    if (row["state"] == "not known") not_known += row["ns"].get<uint64_t>();
  }
  CHECK(all == 1000);
  CHECK(not_known >= 500);

  Viewed viewed(s.script);
  viewed.settings.options = in_order_of_time();
  for (const char* view : {"flat", "tree", "invocations"}) {
    CAPTURE(view);
    CHECK(viewed.text(view).find("[state not known for 500 ns]") != std::string::npos);
  }
  CHECK(viewed.text("summary").find(
            "on the CPU 400 ns, blocked 100 ns, not known 500 ns") != std::string::npos);
  CHECK(viewed.text("threads").find("not known 500 ns (50.0 %)") != std::string::npos);
}

TEST_CASE("each clock counts its own share, and what is not known is in neither") {
  const KernelScript s = one_gap();
  ReplayOptions options;
  options.clock = ReportClock::kCpu;
  CHECK(view_of(s, "flat", options)["functions"][0]["cum_ns"] == 400);
  options.clock = ReportClock::kOffCpu;
  CHECK(view_of(s, "flat", options)["functions"][0]["cum_ns"] == 100);
}

TEST_CASE("a range that begins or ends in the gap cuts what is not known") {
  ReplayOptions options;
  options.filter.from_ns = 1300;
  options.filter.until_ns = 1650;
  CHECK(states_of(one_gap(), 100, options) == "not known 1300-1650");
}

TEST_CASE("own records show that a thread runs only after the gap") {
  KernelScript s;
  const ThreadIndex thread = s.script.thread(s.process, 100, "first");
  s.task(100);
  s.kernel_gap(1100, 1500);
  s.script.enter(thread, 1000, "f");
  s.script.enter(thread, 1200, "g");
  s.script.exit(thread, 1300);
  s.script.enter(thread, 1600, "g");
  s.script.exit(thread, 1700);
  s.script.exit(thread, 2000);
  CHECK(states_of(s, 100) == "running 1000-1100, not known 1100-1600, running 1600-2000");
}

TEST_CASE("a thread that runs is known while its own CPU has records; no other one is") {
  KernelScript s;
  const ThreadIndex first = s.script.thread(s.process, 100, "first");
  const ThreadIndex second = s.script.thread(s.process, 101, "second");
  s.task(100);
  s.task(101);
  s.kernel_gap(1300, 1700, 0);
  s.script.enter(first, 1000, "f");
  s.script.enter(second, 1000, "g");
  s.cpu = 1;
  s.leaves(100, 1100, false);
  s.comes(100, 1200);
  s.cpu = 0;
  s.leaves(101, 1250, false);
  s.cpu = 1;
  s.leaves(100, 1500, false);
  s.woken(100, 1550);
  s.comes(100, 1560);
  s.woken(101, 1720, 100);
  s.cpu = 0;
  s.comes(101, 1730);
  s.script.exit(second, 2000);
  s.script.exit(first, 2000);
  CHECK(states_of(s, 100) ==
        "running 1000-1100, blocked 1100-1200, running 1200-1500, not known 1500-1560, "
        "running 1560-2000");
  CHECK(states_of(s, 101) ==
        "running 1000-1250, blocked 1250-1300, not known 1300-1720, ready 1720-1730, "
        "running 1730-2000");
}

TEST_CASE("a gap that nothing ends lasts to the thread's end") {
  KernelScript s;
  const ThreadIndex thread = s.script.thread(s.process, 100, "first");
  s.task(100);
  s.kernel_gap(1400, INT64_MAX);
  s.script.enter(thread, 1000, "f");
  s.leaves(100, 1100, true);
  s.script.enter(thread, 1800, "g");
  s.script.exit(thread, 1900);
  s.script.exit(thread, 2000);
  CHECK(states_of(s, 100) == "running 1000-1100, ready 1100-1400, not known 1400-2000");
}

TEST_CASE("a thread that only the kernel names is not known before its first record") {
  KernelScript s;
  const ThreadIndex thread = s.script.thread(s.process, 100, "first");
  s.script.enter(thread, 1000, "f");
  s.woken(200, 1100);
  s.comes(200, 1200);
  s.leaves(200, 1500, false);
  s.script.exit(thread, 2000);
  ReplayOptions options;
  options.all_threads = true;
  CHECK(states_of(s, 200, options) ==
        "ready 1100-1200, running 1200-1500, blocked 1500-2000");
}

TEST_CASE("of a process that is not recorded nothing is known for longer than a moment") {
  KernelScript s;
  const ThreadIndex thread = s.script.thread(s.process, 100, "first");
  const ThreadIndex other = s.task(300);
  s.script.definitions.mutable_thread(other)->is_foreign = true;
  s.script.enter(thread, 1000, "f");
  s.leaves(100, 1200, true, 300);
  s.leaves(300, 1300, true, 100);
  s.woken(100, 1400, 300);
  s.leaves(100, 1500, false, 300);
  s.script.exit(thread, 2000);
  ReplayOptions options;
  options.all_threads = true;
  CHECK(states_of(s, 300, options) == "not known 1200-2000");
  CHECK(states_of(s, 100, options) ==
        "running 1000-1200, ready 1200-1300, running 1300-1500, blocked 1500-2000");
}

TEST_CASE("the critical path does not end in a process that is not recorded") {
  KernelScript s;
  const ThreadIndex thread = s.script.thread(s.process, 100, "first");
  const ThreadIndex other = s.task(300);
  s.script.definitions.mutable_thread(other)->is_foreign = true;
  s.script.enter(thread, 1000, "f");
  s.leaves(100, 1200, false, 300);
  s.woken(100, 1300, 300);
  s.leaves(300, 1400, true, 100);
  s.script.exit(thread, 1900);
  s.leaves(100, 2000, false, 300);
  ReplayOptions options;
  options.all_threads = true;
  const Json json = view_of(s, "critical-path", options);
  CHECK(json["stop_ns"] == 2000);
  for (const Json& row : json["critical_path"]) CHECK(row["tid"] == 100);
}
