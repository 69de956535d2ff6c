// The view `flow`: entries, exits and events in the order of time.
#include <doctest/doctest.h>

#include <cerrno>
#include <random>

#include "reader/report/views.hpp"
#include "reader/trace/record.hpp"
#include "tests/support/kernel_script.hpp"
#include "tests/support/random_script.hpp"
#include "tests/unit/report/viewed.hpp"

using namespace arctrace::reader;
using namespace arctrace::testing;

namespace {

void describe(const Record& record, FieldSink& out) {
  describe_values(record, out);
  if (record.type != ARCTRACE_TYPE_TEXT) return;
  BodyReader reader(record.body);
  const uint32_t size = reader.read<arctrace_text_body>().text_size;
  out.title("text", reader.text(size));
}

struct Flow {
  ViewOptions options;
  ReplayFilter filter;

  std::string text(const RecordScript& script) { return viewed(script).text("flow"); }
  Json json(const RecordScript& script) { return viewed(script).json("flow"); }

 private:
  Viewed viewed(const RecordScript& script) {
    Viewed made(script);
    made.settings.options = options;
    made.settings.describe = describe;
    made.replay.filter = filter;
    return made;
  }
};

RecordScript two_programs() {
  RecordScript s;
  const ThreadIndex a = s.program(10, "one");
  const ThreadIndex b = s.program(20, "two");
  s.stack(a, 0, {});
  s.enter(a, 1'000, "main");
  s.enter(b, 1'500, "main");
  s.text(a, 2'000, "hello");
  s.enter(a, 2'500, "f");
  s.exit(a, 4'000);
  s.exit_named(a, 4'500, "other");
  s.lost(a, 5'000, 3);
  s.stack(a, 5'000, {"main", "g"});
  s.unwind(a, 6'000, 1);
  s.exit(a, 7'000);
  s.exit_named(a, 8'000, "start");
  return s;
}

}  // namespace

TEST_CASE("flow: everything in its place") {
  CHECK(Flow().text(two_programs()) == R"(
           Time  Process/thread    Lv  Flow
    0.000001000  10/10              1  > main
    0.000001500  20/20              1  > main
    0.000002000  10/10              2    * TEXT hello
    0.000002500  10/10              2    > f
    0.000004000  10/10              2    < f  1.50 us, self 1.50 us
    0.000004500  10/10              2    ! orphan exit of other
    0.000005000  10/10              2    ! LOST 
    0.000005000  10/10              2    > g [entry lost]
    0.000006000  10/10              2    < g  1.00 us, self 1.00 us [unwound, entry lost]
    0.000007000  10/10              1  < main  6.00 us, self 3.50 us [across a gap]
    0.000008000  10/10              1  < start  8.00 us, self 2.00 us [entered before tracing, across a gap]

Open at the end:
    0.000001500  20/20              1  main
)");
}

TEST_CASE("flow as JSON") {
  const Json json = Flow().json(two_programs());
  const Json& rows = json.at("flow");
  REQUIRE(rows.size() == 11);
  CHECK(rows.at(0).at("type") == "ENTER");
  CHECK(rows.at(0).at("name") == "main");
  CHECK(rows.at(0).at("pid") == 10);
  CHECK(rows.at(2).at("type") == "TEXT");
  CHECK(rows.at(2).at("text") == "hello");
  CHECK(rows.at(4).at("delta_ns") == 1'500);
  CHECK(rows.at(5).at("trouble") == "orphan");
  CHECK(rows.at(5).at("name") == "other");
  CHECK(rows.at(6).at("type") == "LOST");
  CHECK(rows.at(8).at("flags") == Json({"unwound", "entry_lost"}));
  CHECK(rows.at(10).at("flags") == Json({"entered_before", "across_gap"}));
  CHECK(json.at("open_frames").size() == 1);
  CHECK(json.at("open_frames").at(0).at("start_ns") == 1'500);
}

TEST_CASE("flow: a limit of lines") {
  Flow flow;
  flow.options.limit = 2;
  const std::string text = flow.text(two_programs());
  CHECK(text.find("20/20              1  > main\n  (9 rows not shown)\n") !=
        std::string::npos);
}

TEST_CASE("flow: a STACK that contradicts is flagged") {
  RecordScript s;
  const ThreadIndex t = s.program(10, "one");
  s.stack(t, 0, {});
  s.enter(t, 1, "f");
  s.stack(t, 2, {"g"});
  const std::string text = Flow().text(s);
  CHECK(text.find("! STACK record contradicts the stack so far\n") != std::string::npos);
  CHECK(text.find("< f  1 ns, self 1 ns [exit lost]\n") != std::string::npos);
  CHECK(text.find("> g [entry lost]\n") != std::string::npos);
}

TEST_CASE("flow in a time range starts with what is open") {
  Flow flow;
  flow.filter.from_ns = 3'000;
  flow.filter.until_ns = 4'600;
  CHECK(flow.text(two_programs()) == R"(
           Time  Process/thread    Lv  Flow
    0.000003000  10/10              1  > main [started before the range]
    0.000003000  10/10              2    > f [started before the range]
    0.000004000  10/10              2    < f  1.00 us, self 1.00 us [started before the range]
    0.000004500  10/10              2    ! orphan exit of other
    0.000003000  20/20              1  > main [started before the range, stopped after the range]
)");
}

TEST_CASE("flow: the frames of a fork's child have the time of the fork") {
  RecordScript s;
  const ThreadIndex parent = s.program(100, "parent");
  const ThreadIndex child = s.program(200, "child", ARCTRACE_ORIGIN_FORK);
  Process& forked = *s.definitions.mutable_process(1);
  forked.parent_id = s.definitions.processes()[0].id;
  forked.forked_ns = 20;
  s.stack(parent, 0, {});
  s.enter(parent, 10, "main");
  s.enter(parent, 20, "fork");
  s.exit(parent, 25);
  s.stack(child, 30, {});
  s.exit_named(child, 30, "fork");
  s.exit_named(child, 40, "main");
  CHECK(Flow().text(s) == R"(
           Time  Process/thread    Lv  Flow
    0.000000010  100/100            1  > main
    0.000000020  100/100            2    > fork
    0.000000025  100/100            2    < fork  5 ns, self 5 ns
    0.000000020  200/200            1  > main [inherited by fork]
    0.000000020  200/200            2    > fork [inherited by fork]
    0.000000030  200/200            2    < fork  10 ns, self 10 ns [inherited by fork]
    0.000000040  200/200            1  < main  20 ns, self 10 ns [inherited by fork]

Open at the end:
    0.000000010  100/100            1  main
)");
}

TEST_CASE("flow: calls that are too short leave no trace, the others keep their order") {
  Flow flow;
  flow.filter.min_duration_ns = 1'600;
  CHECK(flow.text(two_programs()) == R"(
           Time  Process/thread    Lv  Flow
    0.000001000  10/10              1  > main
    0.000001500  20/20              1  > main
    0.000002000  10/10              2    * TEXT hello
    0.000004500  10/10              2    ! orphan exit of other
    0.000005000  10/10              2    ! LOST 
    0.000007000  10/10              1  < main  6.00 us, self 6.00 us [across a gap]
    0.000008000  10/10              1  < start  8.00 us, self 2.00 us [entered before tracing, across a gap]

Open at the end:
    0.000001500  20/20              1  main
)");
}

TEST_CASE("random traces: with a least duration, flow is what is left of it without") {
  for (uint64_t seed = test_seed(); seed < test_seed() + 100; ++seed) {
    CAPTURE(seed);
    RandomScript::Shape shape;
    shape.vfork = false;  // a parent that continues is shown however short it is
    const RandomScript random(seed, shape);
    std::mt19937_64 rng(seed);
    const uint64_t least = 1 + rng() % 200;

    // The lines of calls that are long enough, or open, remain.
    Json rows = Flow().json(random.script).at("flow");
    std::map<std::pair<int, int>, std::vector<size_t>> open;
    std::vector<bool> dropped(rows.size());
    for (size_t i = 0; i < rows.size(); ++i) {
      const Json& row = rows.at(i);
      if (!row.contains("tid")) continue;
      auto& stack = open[{row.at("pid"), row.at("tid")}];
      const bool adopted =
          row.value("flags", Json::array()).dump().find("before") != std::string::npos;
      if (row.at("type") == "ENTER") {
        stack.push_back(i);
      } else if (row.at("type") == "EXIT" && !row.contains("trouble") && !adopted) {
        if (row.at("delta_ns") < least) dropped[i] = dropped[stack.back()] = true;
        stack.pop_back();
      }
    }
    Json expected = Json::array();
    for (size_t i = 0; i < rows.size(); ++i) {
      if (dropped[i]) continue;
      rows.at(i).erase("base_ns");
      rows.at(i).erase("depth");
      rows.at(i).erase("frames");
      expected.push_back(rows.at(i));
    }
    Flow filtered;
    filtered.filter.min_duration_ns = least;
    Json found = filtered.json(random.script).at("flow");
    for (Json& row : found) {
      row.erase("base_ns");
      row.erase("depth");
      row.erase("frames");
    }
    CHECK(found == expected);
  }
}

namespace {

// Two threads that open files at once, one inside a function of its own.
RecordScript opens() {
  RecordScript s;
  const ThreadIndex a = s.program(10, "one");
  const ThreadIndex b = s.program(20, "two");
  s.enter(a, 1'000, "main");
  s.enter(a, 2'000, "open");
  s.enter(b, 2'000, "open");
  s.arguments(a, 2'000, {number_arg(ARCTRACE_VALUE_SIGNED, 1, 7, 4)});
  s.arguments(b, 2'000, {number_arg(ARCTRACE_VALUE_SIGNED, 1, 8, 4)});
  s.result(b, 3'000, {number_arg(ARCTRACE_VALUE_SIGNED, 0, 3, 4)});
  s.result(a, 3'000,
           {number_arg(ARCTRACE_VALUE_SIGNED, 0, uint64_t(-1), 4),
            number_arg(ARCTRACE_VALUE_ERRNO, 0, 2, 4)});
  s.exit(a, 3'000);
  s.exit(b, 3'000);
  s.enter(a, 4'000, "f");
  s.enter(a, 4'000, "g");
  s.exit(a, 4'000);
  s.exit(a, 5'000);
  s.exit(a, 6'000);
  return s;
}

}  // namespace

TEST_CASE("flow: arguments and results stand after the name") {
  const std::string text = Flow().text(opens());
  CHECK(text == R"(
           Time  Process/thread    Lv  Flow
    0.000001000  10/10              1  > main
    0.000002000  10/10              2    > open(7)
    0.000002000  20/20              1  > open(8)
    0.000003000  10/10              2    < open = -1 ENOENT  1.00 us, self 1.00 us
    0.000003000  20/20              1  < open = 3  1.00 us, self 1.00 us
    0.000004000  10/10              2    > f
    0.000004000  10/10              3      > g
    0.000004000  10/10              3      < g  <1 ns, self -
    0.000005000  10/10              2    < f  1.00 us, self 1.00 us
    0.000006000  10/10              1  < main  5.00 us, self 3.00 us
)");
  Flow filtered;
  filtered.filter.min_duration_ns = 1'000;
  const std::string without_g = filtered.text(opens());
  CHECK(without_g.find("> open(7)") != std::string::npos);
  CHECK(without_g.find("< open = 3") != std::string::npos);
  CHECK(without_g.find('g') == std::string::npos);
  const Json json = Flow().json(opens());
  CHECK(json.at("flow").at(1).at("args") == Json::array({7}));
  CHECK(json.at("flow").at(3).at("retval") == -1);
  CHECK(json.at("flow").at(3).at("errno") == "ENOENT");
  CHECK_FALSE(json.at("flow").at(5).contains("args"));
}

TEST_CASE("flow: a system call that failed has its errno, as a library call has") {
  KernelScript s;
  const ThreadIndex thread = s.script.thread(s.process, 100, "first");
  s.task(100);
  s.script.enter(thread, 1'000, "f");
  s.syscall(100, 1'100, 0);
  s.syscall_end(100, 1'200, -EAGAIN);
  s.syscall(100, 1'300, 0);
  s.syscall_end(100, 1'400, 17);
  s.script.exit(thread, 2'000);
  const std::string text = Flow().text(s.script);
  CHECK(text.find("< K:read = -1 EAGAIN  100 ns") != std::string::npos);
  CHECK(text.find("< K:read  100 ns") != std::string::npos);
  const Json flow = Flow().json(s.script).at("flow");
  REQUIRE(flow.size() == 6);
  CHECK(flow.at(2).at("retval") == -1);
  CHECK(flow.at(2).at("errno") == "EAGAIN");
  CHECK_FALSE(flow.at(4).contains("errno"));
  Viewed whole_calls(s.script);
  whole_calls.settings.functions = {"K:*"};
  CHECK(whole_calls.text("invocations").find("K:read = -1 EAGAIN") != std::string::npos);
  CHECK(whole_calls.text("slowest").find("K:read = -1 EAGAIN") != std::string::npos);
}

TEST_CASE("flow: arguments and results without their call do not appear") {
  RecordScript s;
  const ThreadIndex a = s.program(10, "one");
  s.arguments(a, 1'000, {number_arg(ARCTRACE_VALUE_SIGNED, 1, 7, 4)});
  s.result(a, 1'000, {number_arg(ARCTRACE_VALUE_SIGNED, 0, 7, 4)});
  s.enter(a, 2'000, "f");
  s.arguments(a, 3'000, {number_arg(ARCTRACE_VALUE_SIGNED, 1, 7, 4)});  // too late
  s.enter(a, 4'000, "g");
  s.arguments(a, 4'000, {number_arg(ARCTRACE_VALUE_SIGNED, 1, 1, 4)});
  s.arguments(a, 4'000, {number_arg(ARCTRACE_VALUE_SIGNED, 1, 2, 4)});  // repeated
  s.result(a, 5'000, {number_arg(ARCTRACE_VALUE_SIGNED, 0, 7, 4)});
  s.unwind(a, 5'000, 2);
  const std::string text = Flow().text(s);
  CHECK(text.find("> f\n") != std::string::npos);
  CHECK(text.find("> g(1)\n") != std::string::npos);
  CHECK(text.find("< g = 7  ") != std::string::npos);
  CHECK(text.find("< f  ") != std::string::npos);
}
