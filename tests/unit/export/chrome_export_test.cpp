// --to=chrome: events by their phases, times and lanes.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "tests/support/kernel_script.hpp"
#include "tests/unit/export/exported.hpp"

using namespace arctrace::reader;
using namespace arctrace::testing;

namespace {

// The events of a phase.
std::vector<Json> events_of(const std::string& text, const std::string& phase) {
  std::vector<Json> events;
  const Json file = Json::parse(text);
  for (const Json& event : file.at("traceEvents")) {
    if (event.at("ph") == phase) events.push_back(event);
  }
  return events;
}

// "name start stop" of each call and stretch, by its lane's name: events are sorted by
// their times as viewers do it, and each end belongs to the last begin.
std::map<std::string, std::vector<std::string>> nested(const std::string& text) {
  const Json file = Json::parse(text);
  std::map<int64_t, std::string> lanes;
  std::vector<Json> events;
  for (const Json& event : file.at("traceEvents")) {
    if (event.at("name") == "thread_name") {
      lanes[event.at("tid")] = event.at("args").at("name");
    }
    if (event.contains("ts")) events.push_back(event);
  }
  std::stable_sort(events.begin(), events.end(), [](const Json& a, const Json& b) {
    return a.at("ts").get<double>() < b.at("ts").get<double>();
  });
  const auto text_of = [](const Json& event, const char* key) {
    return " " + std::to_string(std::llround(event.at(key).get<double>() * 1000));
  };
  std::map<int64_t, std::vector<Json>> open;
  std::map<std::string, std::vector<std::string>> calls;
  for (const Json& event : events) {
    std::vector<Json>& stack = open[event.at("tid")];
    if (event.at("ph") == "B") stack.push_back(event);
    if (event.at("ph") != "E") continue;
    REQUIRE(!stack.empty());
    CHECK(stack.back().at("name") == event.at("name"));
    calls[lanes[event.at("tid")]].push_back(event.at("name").get<std::string>() +
                                            text_of(stack.back(), "ts") +
                                            text_of(event, "ts"));
    stack.pop_back();
  }
  return calls;
}

// The names of the events that begin at one time, in the order of the file.
std::vector<std::string> begun_at(const std::string& text, double time_us) {
  std::vector<std::string> names;
  const Json file = Json::parse(text);
  for (const Json& event : file.at("traceEvents")) {
    if (event.contains("ts") && event.at("ts") == time_us && event.at("ph") != "E") {
      names.push_back(event.at("name"));
    }
  }
  return names;
}

}  // namespace

TEST_CASE("chrome: a call that ended is one event, with its times in us") {
  RecordScript script;
  const ThreadIndex thread = script.program(7, "prog");
  script.enter(thread, 1'000'001, "main");
  script.enter(thread, 1'000'500, "f");
  script.exit(thread, 1'002'000);
  script.exit(thread, 1'003'001);
  const std::string text = Exported(script).to("chrome");
  const auto calls = events_of(text, "X");
  REQUIRE(calls.size() == 2);
  CHECK(calls[0].at("name") == "f");
  CHECK(text.find("\"ts\":1000.5,\"dur\":1.5,") != std::string::npos);
  CHECK(text.find("\"ts\":1000.001,\"dur\":3,") != std::string::npos);
  CHECK(calls[1].at("pid") == 7);
  CHECK(calls[1].at("tid") == 7);
  std::map<std::string, Json> names;
  for (const Json& event : events_of(text, "M")) {
    names[event.at("name")] = event.at("args");
  }
  CHECK(names.at("process_name").at("name") == "prog");
  CHECK(names.at("thread_name").at("name") == "prog");
}

TEST_CASE("chrome: a process has the names of all programs that it executed") {
  RecordScript script;
  const ThreadIndex shell = script.program(7, "sh");
  const ThreadIndex list = script.program(7, "ls");
  script.enter(shell, 1000, "f");
  script.enter(list, 2000, "g");
  std::vector<std::string> names;
  for (const Json& event : events_of(Exported(script).to("chrome"), "M")) {
    if (event.at("name") == "process_name") {
      names.push_back(event.at("args").at("name"));
    }
  }
  CHECK(names == std::vector<std::string>{"sh > ls"});
}

TEST_CASE("chrome: a call that did not end has no end") {
  RecordScript script;
  const ThreadIndex thread = script.program(7, "prog");
  script.enter(thread, 1000, "main");
  script.enter(thread, 1000, "f");
  script.enter(thread, 2000, "g");
  script.exit(thread, 3000);
  const std::string text = Exported(script).to("chrome");
  const auto open = events_of(text, "B");
  REQUIRE(open.size() == 2);
  // If frames began together, the outer one comes first.
  CHECK(open[0].at("name") == "main");
  CHECK(open[1].at("name") == "f");
  CHECK(open[1].at("args").at("flags") == Json{"open"});
  CHECK(events_of(text, "E").empty());
  CHECK(events_of(text, "X").size() == 1);
}

TEST_CASE("chrome: calls that touch are no complete events") {
  RecordScript script;
  const ThreadIndex thread = script.program(7, "prog");
  script.enter(thread, 1000, "main");
  script.enter(thread, 1100, "touches the next one");
  script.exit(thread, 1200);
  script.enter(thread, 1200, "stands alone");
  script.exit(thread, 1300);
  script.enter(thread, 1400, "ends with main");
  script.exit(thread, 2000);
  script.exit(thread, 2000);
  const std::string text = Exported(script).to("chrome");
  const auto names_of = [&](const char* phase) {
    std::vector<std::string> names;
    for (const Json& event : events_of(text, phase)) names.push_back(event.at("name"));
    return names;
  };
  const std::vector<std::string> touching = {"touches the next one", "ends with main",
                                             "main"};
  CHECK(names_of("B") == touching);
  CHECK(names_of("E") == touching);
  CHECK(names_of("X") == std::vector<std::string>{"stands alone"});
}

TEST_CASE("chrome: calls that begin together are written from the outermost one") {
  RecordScript script;
  const ThreadIndex thread = script.program(7, "prog");
  script.enter(thread, 1000, "main");
  script.enter(thread, 1000, "f");
  script.enter(thread, 1000, "moment");
  script.exit(thread, 1000);
  script.enter(thread, 1000, "g");
  script.exit(thread, 1200);
  script.exit(thread, 1200);
  script.enter(thread, 1200, "h");
  script.exit(thread, 1300);
  script.enter(thread, 1300, "i");
  script.exit(thread, 1400);
  script.exit(thread, 2000);
  const std::string text = Exported(script).to("chrome");
  CHECK(begun_at(text, 1) == std::vector<std::string>{"main", "f", "moment", "g"});
  CHECK(nested(text).at("prog") ==
        std::vector<std::string>{"g 1000 1200", "f 1000 1200", "h 1200 1300"});
}

TEST_CASE("chrome: calls that begin together with one that does not end") {
  RecordScript script;
  const ThreadIndex thread = script.program(7, "prog");
  script.enter(thread, 1000, "main");
  script.enter(thread, 1000, "open");
  script.enter(thread, 1000, "f");
  script.exit(thread, 1200);
  script.enter(thread, 1200, "g");
  const std::string text = Exported(script).to("chrome");
  CHECK(begun_at(text, 1) == std::vector<std::string>{"main", "open", "f"});
  CHECK(nested(text).at("prog") == std::vector<std::string>{"f 1000 1200"});
}

TEST_CASE("chrome: a call without an entry has a lane of its own") {
  RecordScript script;
  const ThreadIndex thread = script.program(7, "prog");
  script.enter(thread, 1000, "f");
  script.exit(thread, 2000);
  script.enter(thread, 2000, "g");
  script.exit(thread, 2500);
  script.exit_named(thread, 3000, "main");
  std::map<std::string, Json> calls;
  for (const Json& event : events_of(Exported(script).to("chrome"), "X")) {
    calls[event.at("name")] = event;
  }
  CHECK(calls.at("g").at("tid") == 7);
  CHECK(calls.at("main").at("tid") != 7);
  CHECK(calls.at("main").at("ts") == 1);
  CHECK(calls.at("main").at("dur") == 2);
}

TEST_CASE("chrome: gaps that overlap still nest") {
  const RecordScript script = treetest();
  Exported exported(script);
  exported.gaps = overlapping_gaps(0);
  const auto lanes = nested(exported.to("chrome"));
  CHECK(lanes.at("treetest: gaps") ==
        std::vector<std::string>{"lost: full 1000 3000", "lost: full 3000 4000"});
  CHECK(lanes.at("session: cpu 3 gaps") ==
        std::vector<std::string>{"lost: full 2000 4000"});
}

TEST_CASE("chrome: args, retval, counters, instants") {
  const RecordScript script = call_with_points();
  const std::string text = Exported(script).to("chrome");
  const Json call = events_of(text, "X").at(0);
  CHECK(call.at("args").at("args") == Json{5});
  CHECK(call.at("args").at("retval") == 7);
  const Json counter = events_of(text, "C").at(0);
  CHECK(counter.at("name") == "queue");
  CHECK(counter.at("args").at("value") == 12);
  CHECK(events_of(text, "i").at(0).at("name") == "now");
}

TEST_CASE("chrome: states, wake-ups and gaps have lanes of their own") {
  const KernelScript s = one_wake_up();
  Exported exported(s.script);
  Gap gap;
  gap.thread = 0;
  gap.from_ns = 1500;
  gap.to_ns = 1600;
  gap.records = 3;
  exported.gaps = {gap};
  const std::string text = exported.to("chrome");
  // Each begin has the next end in the same lane.
  std::map<std::string, std::vector<Json>> by_name;
  const auto ends = events_of(text, "E");
  const auto begins = events_of(text, "B");
  REQUIRE(begins.size() == ends.size());
  for (size_t i = 0; i < begins.size(); ++i) {
    CHECK(begins[i].at("tid") == ends[i].at("tid"));
    by_name[begins[i].at("name")] = {begins[i], ends[i]};
  }
  REQUIRE(by_name.count("blocked: sleeps") == 1);
  CHECK(by_name["blocked: sleeps"].at(0).at("ts") == 1.1);
  CHECK(by_name["blocked: sleeps"].at(1).at("ts") == 1.3);
  CHECK(by_name["ready: woken"].at(0).at("ts") == 1.3);
  const Json lost = by_name["lost: full"].at(0);
  CHECK(lost.at("args").at("records") == 3);
  CHECK(lost.at("tid") != 100);
  CHECK(lost.at("tid") != by_name["ready: woken"].at(0).at("tid"));
  const Json from = events_of(text, "s").at(0);
  const Json to = events_of(text, "f").at(0);
  CHECK(from.at("tid") == 101);
  CHECK(to.at("tid") == by_name["ready: woken"].at(0).at("tid"));
  CHECK(from.at("id") == to.at("id"));
}

TEST_CASE("chrome: names are hostile") {
  RecordScript script;
  const ThreadIndex thread = script.program(7, "p\"<script>\xff\n");
  const std::string huge(size_t{1} << 20, 'n');
  script.enter(thread, 1000, "a\"b\\\n\x1b[2J\xe2\x80\x8b\xff;<script>");
  script.enter(thread, 1100, huge + "1");
  script.exit(thread, 1200);
  script.enter(thread, 1300, huge + "2");
  script.exit(thread, 1400);
  script.exit(thread, 2000);
  const std::string text = Exported(script).to("chrome");
  CHECK(text.size() < 20'000);
  CHECK(text.find('\x1b') == std::string::npos);
  CHECK(text.find("\xe2\x80\x8b") == std::string::npos);
  const auto calls = events_of(text, "X");
  REQUIRE(calls.size() == 3);
  CHECK(calls[0].at("name") != calls[1].at("name"));
  CHECK(calls[2].at("name") == "a\"b\\\\\\n\\x1b[2J\\u{200b}\\xff;<script>");
}

TEST_CASE("chrome: a coroutine's calls have a lane of their own") {
  RecordScript script;
  const ThreadIndex thread = script.program(7, "prog");
  script.enter(thread, 1000, "main");
  script.coroutine(thread, 1100, 1, {}, 0);
  script.enter(thread, 1200, "body");
  script.coroutine(thread, 1300, 0, {"main"}, 1);
  script.exit(thread, 1400);
  script.coroutine(thread, 1500, 1, {"body"}, 1);
  script.exit(thread, 1600);
  std::map<std::string, Json> calls;
  for (const Json& event : events_of(Exported(script).to("chrome"), "X")) {
    calls[event.at("name")] = event.at("tid");
  }
  CHECK(calls.at("main") == 7);
  CHECK(calls.at("body") != 7);
}

TEST_CASE("chrome: remarks on functions of which calls were left out") {
  RecordScript script = treetest();
  CHECK(!Json::parse(Exported(script).to("chrome")).contains("left_out"));
  script.definitions.mutable_process(0)->switched_off = {{script.key("mainAA"), 12'000}};
  const Json file = Json::parse(Exported(script).to("chrome"));
  CHECK(file.at("left_out") ==
        Json{"calls of mainAA left out: switched off from 12.0 us on"});
  CHECK(file.at("traceEvents").size() > 7);
}
