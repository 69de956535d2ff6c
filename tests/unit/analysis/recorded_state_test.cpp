// Functions that are not complete, because they were switched off or filtered.
#include "reader/analysis/recorded_state.hpp"

#include <doctest/doctest.h>

#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "src/protocol/live_filter.hpp"
#include "tests/support/kernel_script.hpp"
#include "tests/support/record_script.hpp"

using namespace arctrace::reader;
using namespace arctrace::testing;
using namespace std::string_literals;

namespace {

using NameSet = std::set<std::string>;

// From 0 to 1000 ns: main calls leaf (100 to 200), and outer (300 to 500), in which inner
// is called (350 to 400).
RecordScript nested_calls(const char* leaf = "leaf") {
  RecordScript script;
  const ThreadIndex thread = script.program(7, "prog");
  script.enter(thread, 0, "main");
  script.enter(thread, 100, leaf);
  script.exit(thread, 200);
  script.enter(thread, 300, "outer");
  script.enter(thread, 350, "inner");
  script.exit(thread, 400);
  script.exit(thread, 500);
  script.exit(thread, 1000);
  return script;
}

struct FoundStates {
  // `script` must outlive this object.
  explicit FoundStates(const RecordScript& script, ReplayOptions options = {})
      : replay(script.definitions, nullptr, std::move(options)) {
    script.replay(replay);
    states.emplace(replay);
  }

  const RecordedState& of(const std::string& name) const {
    for (FunctionId i = 0; i < replay.functions().size(); ++i) {
      if (replay.functions()[i].name == name) return states->of(i);
    }
    throw std::runtime_error("no function " + name);
  }
  NameSet incomplete() const {
    NameSet names;
    for (const FunctionId i : states->incomplete()) {
      names.insert(replay.functions()[i].name);
    }
    return names;
  }

  Replay replay;
  std::optional<RecordedStates> states;
};

void add_live(RecordScript& script, int64_t time_ns, const std::string& text) {
  script.definitions.mutable_live_filters().add(time_ns, text);
}

void set_filter(RecordScript& script, ProcessIndex process,
                const std::vector<std::string>& entries) {
  std::string text;
  for (const std::string& entry : entries) text += entry + '\0';
  script.definitions.add_name(process, arctrace::kCallFilterNameId, text);
}

}  // namespace

TEST_CASE("recorded: without filters all functions are complete") {
  const RecordScript script = nested_calls();
  const FoundStates found(script);
  CHECK(found.incomplete().empty());
  CHECK(found.states->causes().empty());
  CHECK(found.of("leaf").is_complete());
}

TEST_CASE("recorded: a function that was switched off, until then") {
  RecordScript script = nested_calls();
  script.definitions.mutable_process(0)->switched_off = {{script.key("leaf"), 600},
                                                         {script.key("unseen"), 500}};
  const FoundStates found(script);
  CHECK(found.incomplete() == NameSet{"leaf"});
  const RecordedState& leaf = found.of("leaf");
  REQUIRE(leaf.until.has_value());
  CHECK(leaf.until->from_ns == 600);
  CHECK(leaf.until->by == "switched off");
  CHECK(leaf.partly.empty());
  REQUIRE(found.states->causes().size() == 1);
  const CallsLeftOut& cause = found.states->causes()[0];
  CHECK(cause.functions == 1);
  CHECK(cause.what.from_ns == 600);
  CHECK(!cause.is_filter);

  // In a range of time that ends before the filter, nothing is missing.
  ReplayOptions before;
  before.filter.until_ns = 550;
  CHECK(FoundStates(script, before).incomplete().empty());
}

TEST_CASE("recorded: a forked process has what its parent had switched off by then") {
  for (const int64_t forked_ns : {500, 700}) {
    CAPTURE(forked_ns);
    RecordScript script;
    const ThreadIndex parent = script.program(7, "prog");
    const ThreadIndex child = script.program(8, "prog", ARCTRACE_ORIGIN_FORK);
    Process& process = *script.definitions.mutable_process(1);
    process.parent_id = script.definitions.processes()[0].id;
    process.start_ns = process.forked_ns = forked_ns;
    script.enter(parent, 0, "main");
    script.enter(child, 800, "leaf");  // the parent never calls it
    script.exit(child, 900);
    script.exit(parent, 1000);
    script.definitions.mutable_process(0)->switched_off = {{script.key("leaf"), 600}};
    const FoundStates found(script);
    CHECK(found.incomplete() == (forked_ns < 600 ? NameSet{} : NameSet{"leaf"}));
  }
}

TEST_CASE("recorded: a live filter that excludes a function, and what that calls") {
  RecordScript script = nested_calls();
  add_live(script, 600, "-out*\0"s);
  {
    const FoundStates found(script);
    CHECK(found.incomplete() == NameSet{"outer", "inner"});
    const RecordedState& outer = found.of("outer");
    REQUIRE(outer.until.has_value());
    CHECK(outer.until->from_ns == 600);
    CHECK(outer.until->by == "ctl -N out*");
    CHECK(outer.partly.empty());
    // Functions that are not filtered may call inner, too.
    const RecordedState& inner = found.of("inner");
    CHECK(!inner.until.has_value());
    REQUIRE(inner.partly.size() == 1);
    CHECK(inner.partly[0].from_ns == 600);
    CHECK(!inner.partly[0].to_ns.has_value());
    REQUIRE(found.states->causes().size() == 1);
    CHECK(found.states->causes()[0].functions == 2);
    CHECK(found.states->causes()[0].is_filter);
  }
  // The filter applies until it is removed.
  add_live(script, 800, "");
  const FoundStates found(script);
  const RecordedState& outer = found.of("outer");
  CHECK(!outer.until.has_value());
  REQUIRE(outer.partly.size() == 1);
  CHECK(outer.partly[0].from_ns == 600);
  CHECK(outer.partly[0].to_ns == 800);
  CHECK(found.of("leaf").is_complete());
}

TEST_CASE("recorded: a live filter of the only functions to be recorded") {
  RecordScript script = nested_calls();
  add_live(script, 600, "+outer\0level:3\0"s);
  add_live(script, 700, "+outer\0"s);  // the other filter has changed
  add_live(script, 800, "");
  const FoundStates found(script);
  CHECK(found.incomplete() == NameSet{"main", "leaf", "inner"});
  REQUIRE(found.of("leaf").partly.size() == 1);
  const LeftOut& leaf = found.of("leaf").partly[0];
  CHECK(leaf.from_ns == 600);
  CHECK(leaf.to_ns == 800);
  CHECK(leaf.by == "ctl -F outer");
}

TEST_CASE("recorded: a live filter has linker's names, functions their own") {
  RecordScript script = nested_calls("_Z4leafi");
  add_live(script, 600, "-_Z4leafi\0"s);
  const FoundStates found(script);
  CHECK(found.incomplete() == NameSet{"leaf(int)"});
  CHECK(found.of("leaf(int)").until.has_value());
}

TEST_CASE(
    "recorded: a live filter that is not known any more may be about any function") {
  RecordScript script = nested_calls();
  add_live(script, 600, "?\0"s);
  const FoundStates found(script);
  CHECK(found.incomplete() == NameSet{"main", "leaf", "outer", "inner"});
  CHECK(!found.of("leaf").until.has_value());
  REQUIRE(found.of("leaf").partly.size() == 1);
  CHECK(found.of("leaf").partly[0].from_ns == 600);
}

TEST_CASE("recorded: after many changes a filter that is not known") {
  RecordScript script = nested_calls();
  for (int64_t i = 0; i < 1000; ++i) {
    add_live(script, 500 + i / 4, "-f" + std::to_string(i) + "\0"s);
  }
  const auto all = script.definitions.live_filters().all();
  REQUIRE(all.size() == LiveFilters::kMax);
  CHECK(all.back().entries == std::vector<std::string>{"?"});
  CHECK(all.back().to_ns == INT64_MAX);
  CHECK(all.front().entries == std::vector<std::string>{"-f0"});
  CHECK(FoundStates(script).incomplete().size() == 4);
}

TEST_CASE("recorded: filters with which a program was started") {
  struct Case {
    std::vector<std::string> entries;
    std::string by;
    NameSet incomplete;
  };
  const NameSet all = {"main", "leaf", "outer", "inner"};
  const Case cases[] = {
      {{"time:1000000"}, "-t 1ms", all},
      {{"time:1500"}, "-t 1500ns", all},
      {{"depth:2"}, "-D 2", all},
      {{"+out*"}, "-F out*", {"main", "leaf", "inner"}},
      {{"+re:^out"}, "-F re:^out", {"main", "leaf", "inner"}},
      {{"+re:e{1}"}, "-F re:e{1}", all},
      {{"-outer"}, "-N outer", {"outer", "inner"}},
      {{"-re:^x"}, "-N re:^x", {}},
      {{"-re:^ou"}, "-N re:^ou", {"outer", "inner"}},
      {{"-re:(o)\\1"}, "-N re:(o)\\1", all},
      // Functions that these leave out have no row.
      {{"size:100"}, "-Z 100", {}},
      {{"module:lib*"}, "-L lib*", {}},
      {{"size:100", "depth:2"}, "-Z 100 -D 2", all},
      {{"of a later version"}, "what is not known", all},
  };
  for (const Case& tried : cases) {
    CAPTURE(tried.by);
    RecordScript script = nested_calls();
    set_filter(script, 0, tried.entries);
    const FoundStates found(script);
    CHECK(found.incomplete() == tried.incomplete);
    REQUIRE(found.states->causes().size() == 1);
    const CallsLeftOut& cause = found.states->causes()[0];
    CHECK(cause.what.by == tried.by);
    CHECK(!cause.what.from_ns.has_value());
    CHECK(!cause.what.to_ns.has_value());
    CHECK(cause.functions == tried.incomplete.size());
  }
}

TEST_CASE("recorded: a filter that one of two programs was started with") {
  RecordScript script = nested_calls();
  const ThreadIndex other = script.program(8, "other");
  script.enter(other, 0, "main");
  script.exit(other, 1000);
  set_filter(script, 1, {"time:1000"});
  const FoundStates found(script);
  REQUIRE(found.states->causes().size() == 1);
  CHECK(found.states->causes()[0].what.by == "-t 1us (1 of 2 processes)");
}

TEST_CASE("recorded: what is no function is not filtered") {
  RecordScript script = nested_calls();
  const ThreadIndex thread = 0;
  script.enter(thread, 1100, "[loader]");
  script.exit(thread, 1200);
  set_filter(script, 0, {"time:1000"});
  CHECK(!FoundStates(script).incomplete().contains("[loader]"));
}

namespace {

constexpr uint32_t on(uint32_t events) {
  return ARCTRACE_GATE_ALL | events << ARCTRACE_KERNEL_EVENT_SHIFT;
}

// A thread in f from 0 to 1000 ns, with a system call (100 to 200) and a page fault
// (300).
struct KernelCalls : KernelScript {
  KernelCalls() {
    const ThreadIndex thread = script.thread(process, 100);
    script.enter(thread, 0, "f");
    syscall(100, 100, 0);
    syscall_end(100, 200);
    add(100, 300, ARCTRACE_TYPE_PAGE_FAULT, Bytes().u64(1).u32(0).u32(0));
    script.exit(thread, 1000);
  }
  KernelEventTimes& events() { return script.definitions.mutable_kernel_events(); }
};

}  // namespace

TEST_CASE("recorded: events of the kernel's that were recorded all the time, or never") {
  KernelCalls t;
  t.events().add(0, on(ARCTRACE_KERNEL_SYSCALLS | ARCTRACE_KERNEL_FAULTS));
  // While no records of the kernel are written, there is a gap.
  t.events().add(400, ARCTRACE_GATE_FUNCTIONS);
  t.events().add(500, on(ARCTRACE_KERNEL_SYSCALLS | ARCTRACE_KERNEL_FAULTS));
  CHECK(FoundStates(t.script).incomplete().empty());
  CHECK(FoundStates(t.script).states->causes().empty());
}

TEST_CASE("recorded: events of the kernel's that were switched off and on") {
  KernelCalls t;
  t.events().add(0, on(ARCTRACE_KERNEL_SYSCALLS));
  t.events().add(250, on(ARCTRACE_KERNEL_SYSCALLS | ARCTRACE_KERNEL_FAULTS));
  t.events().add(400, on(ARCTRACE_KERNEL_FAULTS));
  {
    const FoundStates found(t.script);
    CHECK(found.incomplete() == NameSet{"K:read", "K:page fault"});
    const RecordedState& read = found.of("K:read");
    REQUIRE(read.until.has_value());
    CHECK(read.until->from_ns == 400);
    CHECK(read.until->by == "ctl --off syscalls");
    CHECK(read.partly.empty());
    const RecordedState& fault = found.of("K:page fault");
    CHECK(!fault.until.has_value());
    REQUIRE(fault.partly.size() == 1);
    CHECK(!fault.partly[0].from_ns.has_value());
    CHECK(fault.partly[0].to_ns == 250);
    CHECK(fault.partly[0].by == "recording without page-faults");
    CHECK(found.of("f").is_complete());
  }
  t.events().add(600, on(ARCTRACE_KERNEL_SYSCALLS));
  const FoundStates found(t.script);
  const RecordedState& read = found.of("K:read");
  CHECK(!read.until.has_value());
  REQUIRE(read.partly.size() == 1);
  CHECK(read.partly[0].from_ns == 400);
  CHECK(read.partly[0].to_ns == 600);
  CHECK(found.of("K:page fault").until->from_ns == 600);

  // In a range of time in which they were on, nothing is missing.
  ReplayOptions within;
  within.filter.from_ns = 650;
  CHECK(!FoundStates(t.script, within).incomplete().contains("K:read"));
}

TEST_CASE("recorded: after many changes the kernel's events are not known to be there") {
  KernelCalls t;
  for (size_t i = 0; i < 3 * KernelEventTimes::kMax; ++i) {
    t.events().add(static_cast<int64_t>(i),
                   on(i % 2 == 0 ? ARCTRACE_KERNEL_SYSCALLS : 0));
  }
  const auto all = t.script.definitions.kernel_events().all();
  CHECK(all.size() <= KernelEventTimes::kMax + 1);
  CHECK(all.back().events == 0);
  CHECK(all.back().to_ns == INT64_MAX);
}
