// The cost of recording: in whose time it is counted, and the times without it.
#include "reader/replay/hook_costs.hpp"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "tests/support/kernel_script.hpp"
#include "tests/support/record_script.hpp"

using namespace arctrace::reader;
using namespace arctrace::testing;

namespace {

// The script's functions have names. An entry or exit takes 2 ns inside, 3 ns outside.
const std::vector<arctrace_hook_cost> kCosts = {
    {ARCTRACE_HOOK_API, 4000, 6000},
    {ARCTRACE_HOOK_LIBRARY_CALL, 40'000, 60'000},
    {ARCTRACE_HOOK_ARGUMENTS, 1000, 7000},
};

// Saves the corrected times of each call.
class Times : public ReplayListener {
 public:
  uint64_t frame_opened(const FrameInfo& /*frame*/) override { return 0; }
  void frame_closed(const FrameInfo& frame, uint64_t /*token*/, bool shown) override {
    if (!shown) return;
    text += std::to_string(frame.self_ns) + "/" + std::to_string(frame.duration_ns) + " ";
  }
  void frame_adopted(const FrameInfo& /*frame*/) override {}
  void point(const PointInfo& /*point*/) override {}

  std::string text;
};

struct Replayed {
  std::string calls;     // base and cum of each, in the order of their ends
  std::string tree;      // names with calls, base and cum
  std::string overhead;  // of each node in preorder, ps
  uint64_t root_self_ns = 0, root_total_ns = 0;
};

Replayed replayed(const RecordScript& script, bool is_corrected,
                  const ReplayFilter& filter = {},
                  ReportClock clock = ReportClock::kWall) {
  Times times;
  ReplayOptions options;
  options.filter = filter;
  options.clock = clock;
  options.listener = &times;
  options.hook_costs = kCosts;
  options.is_corrected = is_corrected;
  Replay replay(script.definitions, nullptr, options);
  script.replay(replay);
  CHECK(replay.knows_costs());
  REQUIRE(replay.threads().size() == 1);
  const NodeIndex root = replay.threads()[0].root;
  Replayed found{times.text, tree_text(replay, root), {}, 0, 0};
  for (NodeIndex at = root; at != kNoNode;
       at = replay.tree().next_in_preorder(at, root)) {
    found.overhead += std::to_string(replay.tree()[at].overhead_ps) + " ";
  }
  found.root_self_ns = replay.tree()[root].self_ns;
  found.root_total_ns = replay.tree()[root].total_ns;
  return found;
}

// f 100-200 calls g 110-150, which takes 40 ns, and g 160-163, which cannot have.
RecordScript two_calls() {
  RecordScript s;
  const ThreadIndex t = s.program(1, "sample");
  s.enter(t, 100, "f");
  s.enter(t, 110, "g");
  s.exit(t, 150);
  s.enter(t, 160, "g");
  s.exit(t, 163);
  s.exit(t, 200);
  return s;
}

}  // namespace

TEST_CASE("costs: inside of each call, and in the time of its caller") {
  const Replayed found = replayed(two_calls(), false);
  CHECK(found.calls == "40/40 3/3 57/100 ");
  // The root has the part of f; f has its own and those of two g.
  CHECK(found.overhead == "6000 16000 8000 ");
  CHECK(found.root_total_ns == 100);
}

TEST_CASE("costs: they are taken off each call and each node, never below zero") {
  const Replayed found = replayed(two_calls(), true);
  CHECK(found.calls == "36/36 0/0 41/77 ");
  // All calls of a node count together: 43 - 8.
  CHECK(found.tree == "f 1:41[g 2:35]");
  CHECK(found.overhead == "6000 16000 8000 ");
  CHECK(found.root_self_ns == 0);
  CHECK(found.root_total_ns == 76);
}

TEST_CASE("costs: a call that a filter hides leaves its cost to the frame around it") {
  ReplayFilter without_g, outermost, long_ones;
  without_g.except = {"g"};
  outermost.max_depth = 1;
  long_ones.min_duration_ns = 10;
  for (const ReplayFilter& filter : {without_g, outermost}) {
    const Replayed found = replayed(two_calls(), true, filter);
    CHECK(found.calls == "76/76 ");
    CHECK(found.overhead == "6000 24000 ");
  }
  const Replayed found = replayed(two_calls(), true, long_ones);
  CHECK(found.calls == "36/36 40/76 ");
  CHECK(found.overhead == "6000 20000 4000 ");
}

TEST_CASE("costs: only those of the time range count") {
  // The exit of f is after the range, the entry of f before it.
  ReplayFilter range;
  range.from_ns = 105;
  range.until_ns = 165;
  const Replayed found = replayed(two_calls(), true, range);
  CHECK(found.overhead == "0 12000 8000 ");
  CHECK(found.root_total_ns == 60 - 12 - 8);
}

TEST_CASE("costs: calls that are open, unwound or not known take what their records do") {
  RecordScript s;
  const ThreadIndex t = s.program(1, "sample");
  s.enter(t, 100, "f");
  s.enter(t, 200, "g");
  s.unwind(t, 300, 1);
  s.enter(t, 400, "g");
  s.exit_named(t, 500, "g");
  s.enter(t, 600, "h");
  s.text(t, 700, "end");
  CHECK(replayed(s, false).overhead == "3000 14000 2000 6000 ");
}

TEST_CASE("costs: arguments add to the call and to its caller") {
  RecordScript s;
  const ThreadIndex t = s.program(1, "sample");
  s.enter(t, 100, "f");
  s.enter(t, 110, "g");
  s.add(t, 110, ARCTRACE_TYPE_ARGUMENTS, Bytes().u32(0));
  s.add(t, 150, ARCTRACE_TYPE_RESULT, Bytes().u32(0));
  s.exit(t, 150);
  s.exit(t, 200);
  CHECK(replayed(s, false).overhead == "6000 24000 6000 ");
}

TEST_CASE("costs: recording is time on the CPU") {
  KernelScript s;
  const ThreadIndex thread = s.script.thread(s.process, 100);
  s.script.enter(thread, 1000, "f");
  s.leaves(100, 1002, false);
  s.woken(100, 1500);
  s.comes(100, 1550);
  s.script.exit(thread, 1551);
  // f was on the CPU for 3 ns of its time.
  CHECK(replayed(s.script, true).calls == "548/548 ");
  CHECK(replayed(s.script, true, {}, ReportClock::kCpu).calls == "0/0 ");
  CHECK(replayed(s.script, true, {}, ReportClock::kOffCpu).calls == "548/548 ");
}

TEST_CASE("costs: the kind of a call is told by its key, its module and its process") {
  const uint64_t library = ARCTRACE_FRAME_NAME_BIT | ARCTRACE_FRAME_LIBRARY_BIT | 1;
  const uint64_t named = ARCTRACE_FRAME_NAME_BIT | 1;
  for (const bool is_patched : {false, true}) {
    for (const uint32_t module_kind : {0u, uint32_t{ARCTRACE_HOOK_XRAY}}) {
      CHECK(HookCosts::kind_of_call(library, module_kind, is_patched) ==
            ARCTRACE_HOOK_LIBRARY_CALL);
      CHECK(HookCosts::kind_of_call(named, module_kind, is_patched) == ARCTRACE_HOOK_API);
    }
    for (const uint32_t kind : {ARCTRACE_HOOK_XRAY, ARCTRACE_HOOK_RETURN}) {
      CHECK(HookCosts::kind_of_call(0x1000, kind, is_patched) == kind);
    }
  }
  CHECK(HookCosts::kind_of_call(0x1000, 0, false) == ARCTRACE_HOOK_FUNCTION);
  CHECK(HookCosts::kind_of_call(0x1000, 0, true) == ARCTRACE_HOOK_PATCHED);
}

TEST_CASE("costs: each kind of call has its own, and those that are not known none") {
  const HookCosts costs(kCosts);
  CHECK(costs.of_call(ARCTRACE_HOOK_LIBRARY_CALL).inside_ps == 20'000);
  CHECK(costs.of_call(ARCTRACE_HOOK_LIBRARY_CALL).outside_ps == 30'000);
  CHECK(costs.of_call(ARCTRACE_HOOK_API).inside_ps == 2000);
  CHECK(costs.of_call(ARCTRACE_HOOK_FUNCTION).inside_ps == 0);
  CHECK(costs.of_call(ARCTRACE_HOOK_XRAY).inside_ps == 0);
  const std::vector<arctrace_hook_cost> functions = {{ARCTRACE_HOOK_FUNCTION, 2000, 0},
                                                     {ARCTRACE_HOOK_PATCHED, 4000, 0},
                                                     {ARCTRACE_HOOK_RETURN, 6000, 0},
                                                     {77, 1, 1}};
  const HookCosts of_functions(functions);
  CHECK(of_functions.of_call(ARCTRACE_HOOK_FUNCTION).inside_ps == 1000);
  CHECK(of_functions.of_call(ARCTRACE_HOOK_PATCHED).inside_ps == 2000);
  CHECK(of_functions.of_call(ARCTRACE_HOOK_RETURN).inside_ps == 3000);
  // The cost is that of other compiled-in hooks.
  CHECK(of_functions.of_call(ARCTRACE_HOOK_XRAY).inside_ps == 1000);
  const std::vector<arctrace_hook_cost> unknown = {{77, 1, 1}};
  CHECK_FALSE(HookCosts(unknown).is_known());
  CHECK_FALSE(HookCosts({}).is_known());
}

TEST_CASE("costs: functions of a module cost what its hooks do, in a fork child too") {
  RecordScript s;
  const ProcessIndex parent = s.process(1, "/bin/sample");
  Module module;
  module.start = 0x1000;
  module.end = 0x2000;
  module.path = "hooked";
  s.definitions.add_module(parent, module);
  module.start = 0x2000;
  module.end = 0x3000;
  module.path = "other";
  s.definitions.add_module(parent, module);
  s.definitions.set_hook_kind(parent, 0x1100, 0, ARCTRACE_HOOK_XRAY);
  const ProcessIndex child = s.process(2, "/bin/sample", ARCTRACE_ORIGIN_FORK);
  s.definitions.mutable_process(child)->parent_id = s.definitions.process(parent)->id;
  const std::vector<arctrace_hook_cost> costs = {{ARCTRACE_HOOK_FUNCTION, 2000, 4000},
                                                 {ARCTRACE_HOOK_XRAY, 20'000, 40'000}};
  int64_t start = 0;
  for (const ProcessIndex process : {parent, child}) {
    const ThreadIndex t = s.thread(process, 1);
    s.add(t, start + 100, ARCTRACE_TYPE_ENTER, key_body(0x1100));
    s.add(t, start + 200, ARCTRACE_TYPE_ENTER, key_body(0x2100));
    s.exit(t, start + 300);
    s.exit(t, start + 400);
    start += 1000;
  }
  ReplayOptions options;
  options.hook_costs = costs;
  Replay replay(s.definitions, nullptr, options);
  s.replay(replay);
  REQUIRE(replay.threads().size() == 2);
  for (const ThreadTree& thread : replay.threads()) {
    std::string overhead;
    for (NodeIndex at = thread.root; at != kNoNode;
         at = replay.tree().next_in_preorder(at, thread.root)) {
      overhead += std::to_string(replay.tree()[at].overhead_ps) + " ";
    }
    // The root has the outside of the first call, which has that of the second.
    CHECK(overhead == "40000 24000 2000 ");
  }
}
