// The records that a filter's text admits, and the gate without the classes that it may
// exclude.
#include "src/protocol/record_filter.hpp"

#include <doctest/doctest.h>

#include <cstring>
#include <string>
#include <vector>

#include "src/protocol/control_events.hpp"

namespace arctrace {
namespace {

using namespace std::string_literals;

bool admits(const std::string& text, uint32_t pid, uint32_t tid) {
  return ThreadFilter(text, pid, tid).admits();
}

struct ControlPage {
  std::vector<std::byte> bytes = std::vector<std::byte>(size_t{16} << 10);
  BufferView view{bytes.data(), Geometry{}};

  void publish(const std::string& text) {
    uint64_t words[kFilterWords<arctrace_record_filter>] = {};
    std::memcpy(words, text.data(), text.size());
    CHECK(publish_filter(record_filter_area(view), words,
                         static_cast<uint32_t>(text.size())));
    update_unfiltered(view);
  }
};

}  // namespace

TEST_CASE("threads are admitted by their own number or their process'") {
  CHECK(admits("", 1, 2));
  CHECK(admits("event:x\0level:3\0"s, 1, 2));
  CHECK(admits("pid:1\0"s, 1, 2));
  CHECK_FALSE(admits("pid:2\0"s, 1, 2));
  CHECK_FALSE(admits("pid:11\0"s, 1, 1));
  CHECK(admits("pid:5\0tid:2\0"s, 1, 2));
  CHECK_FALSE(admits("pid:5\0tid:3\0"s, 1, 2));
}

TEST_CASE("events are admitted by name and level") {
  CHECK(admits_event("", "a", 7));
  CHECK(admits_event("pid:4\0"s, "a", 7));
  CHECK(admits_event("event:b\0event:a*\0"s, "abc", 7));
  CHECK_FALSE(admits_event("event:b\0"s, "abc", 0));
  CHECK_FALSE(admits_event("event:a*\0not:*c\0"s, "abc", 0));
  CHECK(admits_event("level:3\0"s, "a", 3));
  CHECK_FALSE(admits_event("event:a\0level:3\0"s, "a", 4));
}

TEST_CASE("instants and counters are admitted by their names, apart from events") {
  CHECK(admits_instant("", "a"));
  CHECK(admits_instant("event:b\0not:a\0level:0\0pid:4\0"s, "a"));
  CHECK(admits_event("mark:b\0notmark:a\0"s, "a", 7));
  CHECK(admits_instant("mark:b\0mark:a*\0"s, "abc"));
  CHECK_FALSE(admits_instant("mark:b\0"s, "abc"));
  CHECK_FALSE(admits_instant("mark:a*\0notmark:*c\0"s, "abc"));
  CHECK_FALSE(admits_instant("notmark:a\0"s, "a"));
  CHECK_FALSE(admits_instant("mark:["s, "a"));
}

// Whether an event with the fields u32 n and f64 x is admitted.
bool meets(std::string_view text, uint32_t n, double x) {
  std::byte payload[12];
  std::memcpy(payload, &n, sizeof n);
  std::memcpy(payload + 4, &x, sizeof x);
  return admits_payload(text, payload, [](const auto& use) {
    if (use(uint32_t{ARCTRACE_FIELD_U32}, std::string_view("n"))) {
      use(uint32_t{ARCTRACE_FIELD_F64}, std::string_view("x"));
    }
  });
}

TEST_CASE("events are admitted by conditions on their fields") {
  CHECK(meets("", 1, 0.5));
  CHECK(meets("event:no\0"s, 1, 0.5));
  CHECK(meets("where:n = 1\0"s, 1, 0.5));
  CHECK_FALSE(meets("where:n = 1\0where:x < 0\0"s, 1, 0.5));
  CHECK(meets("where:n = 1\0where:x < 1\0"s, 1, 0.5));
  CHECK_FALSE(meets("where:m = 1\0"s, 1, 0.5));
  // The bits of 0.5 are in the text: without them the writer does not know the number.
  CHECK(meets("where:x >= 0.5 #3fe00000000000003f000000\0"s, 1, 0.5));
  CHECK_FALSE(meets("where:x > 0.5 #3fe00000000000003f000000\0"s, 1, 0.5));
  CHECK(meets("where:n > 0.5 #3fe00000000000003f000000\0"s, 1, 0.5));
  CHECK_FALSE(meets("where:x >= 0.5\0"s, 1, 0.5));
  CHECK_FALSE(meets("where:x >= 0.5 #3fe000000000000g3f000000\0"s, 1, 0.5));
  CHECK(filtered_classes("where:n = 1\0"s) == ARCTRACE_GATE_EVENTS);
}

TEST_CASE("a text that anybody may have written") {
  for (const std::string& text :
       {"where:"s, "where:\0"s, "where:=\0"s, "where:n =\0"s, "where:n = 1 #\0"s,
        "where: #3fe00000000000003f000000\0"s, "where:n"s, "where:n = \"\0"s}) {
    CHECK_FALSE(meets(text, 1, 0.5));
  }
  CHECK(admits("pid\0:\0\0p"s, 1, 2));
  CHECK_FALSE(admits("pid:99999999999999999999\0"s, 1, 2));
  CHECK_FALSE(admits_event("event:["s, "a", 0));
}

TEST_CASE("the fast path's gate lacks the classes that the filter is about") {
  ControlPage page;
  arctrace_control& control = page.view.control();
  control.gate = ARCTRACE_GATE_ALL;
  page.publish("");
  CHECK(control.unfiltered == ARCTRACE_GATE_ALL);
  page.publish("level:3\0"s);
  CHECK(control.unfiltered == (ARCTRACE_GATE_ALL & ~ARCTRACE_GATE_EVENTS));
  page.publish("mark:a\0"s);
  CHECK(control.unfiltered == (ARCTRACE_GATE_ALL & ~ARCTRACE_GATE_MARKS));
  page.publish("notmark:a\0not:b\0"s);
  CHECK(control.unfiltered ==
        (ARCTRACE_GATE_ALL & ~(ARCTRACE_GATE_MARKS | ARCTRACE_GATE_EVENTS)));
  // A condition of an unknown kind may be about anything.
  page.publish("later:3\0"s);
  CHECK(control.unfiltered == ARCTRACE_GATE_KERNEL);
  page.publish("tid:3\0"s);
  CHECK(control.unfiltered == ARCTRACE_GATE_KERNEL);
  control.gate = ARCTRACE_GATE_EVENTS;
  page.publish("");
  CHECK(control.unfiltered == ARCTRACE_GATE_EVENTS);
  // While the filter is being changed, each record must ask it.
  record_filter_area(page.view).round = 9;
  update_unfiltered(page.view);
  CHECK(control.unfiltered == 0);
}

TEST_CASE("a moment has what is recorded and the rounds of the filters") {
  const GateChange change = GateChange::unpack(GateChange{0x3A5, 0x1A34, 0x7FE}.pack());
  CHECK(change.recorded == 0x3A5);
  CHECK(change.live_generation == 0x234);
  CHECK(change.record_generation == 0x7FE);
}

TEST_CASE("the kernel's events are recorded where its class is") {
  ControlPage page;
  arctrace_control& control = page.view.control();
  control.kernel_recorded =
      ARCTRACE_KERNEL_SYSCALLS | ARCTRACE_KERNEL_INTERRUPTS | 1u << 9;
  control.gate = ARCTRACE_GATE_ALL;
  CHECK(recorded_now(page.view) == (ARCTRACE_GATE_ALL | 1u << 4 | 1u << 9));
  control.gate = ARCTRACE_GATE_ALL & ~ARCTRACE_GATE_KERNEL;
  CHECK(recorded_now(page.view) == (ARCTRACE_GATE_ALL & ~ARCTRACE_GATE_KERNEL));
}

}  // namespace arctrace
