// Control events in the control page (src/protocol/control_events.hpp).
#include "src/protocol/control_events.hpp"

#include <doctest/doctest.h>

#include <utility>
#include <vector>

namespace arctrace::testing {
namespace {

struct Page {
  alignas(8) std::byte bytes[ARCTRACE_CPUS_OFFSET] = {};
  BufferView view{bytes, Geometry{}};
  uint32_t seen = 0;

  // The new events of one kind: ticks and value.
  std::vector<std::pair<uint64_t, uint32_t>> next(const ControlEvents& events) {
    std::vector<std::pair<uint64_t, uint32_t>> found;
    seen = for_each_control_event_untrusted(
        events, seen,
        [&](uint64_t ticks, uint32_t value) { found.emplace_back(ticks, value); });
    return found;
  }
};
using Found = std::vector<std::pair<uint64_t, uint32_t>>;

TEST_CASE("moments are found once, in order, each kind by itself") {
  Page page;
  CHECK(page.next(gate_changes(page.view)).empty());
  note_control_event(gate_changes(page.view), 10, 15);
  note_control_event(gate_changes(page.view), 20, 14);
  note_control_event(execs(page.view), 30, 100);
  CHECK(page.next(gate_changes(page.view)) == Found{{10, 15}, {20, 14}});
  CHECK(page.next(gate_changes(page.view)).empty());
  page.seen = 0;
  CHECK(page.next(execs(page.view)) == Found{{30, 100}});
}

TEST_CASE("of more moments than are kept, the last ones are found") {
  Page page;
  for (uint32_t i = 1; i <= 100; ++i) note_control_event(gate_changes(page.view), i, i);
  const Found found = page.next(gate_changes(page.view));
  REQUIRE(found.size() == ARCTRACE_GATE_CHANGES_KEPT);
  CHECK(found.front().first == 100 - ARCTRACE_GATE_CHANGES_KEPT + 1);
  CHECK(found.back().first == 100);
}

TEST_CASE("a moment that is being noted is left for the next time") {
  Page page;
  const ControlEvents events = execs(page.view);
  note_control_event(events, 1, 1);
  note_control_event(events, 2, 2);
  events.entry(1).round = 0;
  CHECK(page.next(events) == Found{{1, 1}});
  events.entry(1).round = 2;
  CHECK(page.next(events) == Found{{2, 2}});
}

TEST_CASE("how exactly an exec is known is kept, rounded up") {
  for (const uint64_t within :
       {uint64_t{0}, uint64_t{1}, uint64_t{31}, uint64_t{32}, uint64_t{33},
        uint64_t{807'742}, uint64_t{0xFFFF'FFFF}, uint64_t{31} << 31}) {
    const ExecEvent exec = ExecEvent::unpack(ExecEvent{4'194'303, within}.pack());
    CHECK(exec.pid == 4'194'303);
    CHECK(exec.within_ticks >= within);
    CHECK(exec.within_ticks <= within + within / 15);
  }
  CHECK(ExecEvent::unpack(ExecEvent{1, UINT64_MAX}.pack()).within_ticks == uint64_t{31}
                                                                               << 31);
  CHECK(ExecEvent::unpack(100).within_ticks == 0);  // no span
}

}  // namespace
}  // namespace arctrace::testing
