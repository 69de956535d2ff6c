// What the page shows of a trace: lanes by their work, parts of a process' life, slowest
// calls, processes, the critical path.
#include "reader/ui/model/page_parts.hpp"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "reader/ui/model/page_json.hpp"
#include "reader/ui/model/page_lists.hpp"
#include "tests/support/kernel_script.hpp"
#include "tests/unit/ui/model/paged.hpp"

namespace arctrace::reader {
namespace {

using testing::KernelScript;
using testing::Paged;
using testing::RecordScript;
using Json = nlohmann::json;

TEST_CASE("page: the parts of a process' life are of its lane, and are no calls") {
  RecordScript script;
  const ThreadIndex main = script.program(7, "main");
  Process& process =
      *script.definitions.mutable_process(script.definitions.threads()[main].process);
  process.exec_ns = 0;
  process.main_ns = 900;
  script.definitions.mutable_thread(main)->start_ns = 800;
  script.enter(main, 820, "init");
  script.exit(main, 850);
  script.enter(main, 1000, "main");
  script.exit(main, 2000);
  const Paged paged(script);
  const Lane& lane = paged.lane(7);
  REQUIRE(lane.parts.size() == 2);
  CHECK(paged.name(lane.parts[0].what) == "[loader]");
  CHECK(lane.parts[0].start_ns == 0);
  CHECK(lane.parts[0].stop_ns == 800);
  CHECK(paged.name(lane.parts[1].what) == "[constructors]");
  CHECK(lane.parts[1].start_ns == 800);
  CHECK(lane.parts[1].stop_ns == 900);
  CHECK(lane.calls == 2);
  CHECK(paged.parts.timeline().row(lane, kStateLevels).stretches.size() == 2);
}

TEST_CASE(
    "page: without the kernel a lane's work is the time in calls that do not wait") {
  RecordScript script;
  const ThreadIndex thread = script.program(7, "main");
  script.enter(thread, 0, "work");
  script.enter(thread, 100, "pthread_cond_wait");
  script.exit(thread, 900);
  script.exit(thread, 1000);
  const Paged paged(script);
  CHECK(paged.lane(7).work_ns == 200);
  CHECK(paged.lane(7).cpu_ns == 0);
}

TEST_CASE("page: which functions wait is known by library and name") {
  Functions functions;
  const FunctionId wait = functions.intern("/lib/libc.so.6", "pthread_cond_wait", {});
  const FunctionId own = functions.intern("/bin/program", "pthread_cond_wait", {});
  const FunctionId copy = functions.intern("/lib/libc.so.6", "memcpy", {});
  WaitFunctions waits;
  waits.set_functions(functions);
  CHECK(waits.contains(wait));
  CHECK_FALSE(waits.contains(own));
  CHECK_FALSE(waits.contains(copy));
  CHECK_FALSE(waits.contains(kRootFunction));
}

TEST_CASE("page: with the kernel's records a lane's work is its CPU time") {
  const KernelScript s = testing::one_wake_up();
  Paged paged(s.script);
  uint64_t running_ns = 0;
  const Lane& lane = paged.lane(100);
  for (const Stretch& one : paged.parts.timeline().row(lane, 0).stretches) {
    running_ns += one.duration_ns();
  }
  CHECK(running_ns > 0);
  CHECK(paged.cpu_ns(lane) == running_ns);
  CHECK(running_ns < lane.work_ns);
}

TEST_CASE("page: the slowest calls of a function are found among many short ones") {
  RecordScript script;
  const ThreadIndex first = script.program(7, "main");
  const ThreadIndex second =
      script.thread(script.definitions.threads()[first].process, 8);
  int64_t now = 0;
  const auto call = [&](ThreadIndex thread, int64_t duration_ns) {
    script.enter(thread, now, "serve");
    script.enter(thread, now, "request");
    script.exit(thread, now + duration_ns);
    script.exit(thread, now + duration_ns);
    now += duration_ns + 1;
  };
  for (int i = 0; i < 50; ++i) call(first, 10 + i % 5);
  const int64_t slow = now;
  call(second, 201);
  for (int i = 0; i < 50; ++i) call(first, 10 + i % 5);
  const int64_t open = now;
  script.enter(first, open, "request");
  script.enter(second, open + 300, "end");
  script.exit(second, open + 300);
  const Paged paged(script);
  const std::vector<PlacedCall> calls =
      paged.parts.slowest().of(paged.function("request"));
  REQUIRE(calls.size() == SlowestOfEach::kMax);
  CHECK(calls[0].start_ns == open);
  CHECK((calls[0].flags & kFrameOpen) != 0);
  CHECK(calls[0].depth == 1);
  CHECK(calls[1].start_ns == slow);
  CHECK(calls[1].thread == second);
  CHECK(calls[1].duration_ns == 201);
  CHECK(calls[1].depth == 2);
  CHECK(calls[2].duration_ns == 14);
  CHECK(calls[2].start_ns < calls[3].start_ns);
  CHECK(paged.parts.slowest().of(paged.function("request"), 2).size() == 2);
  CHECK(paged.parts.slowest().of(100'000).empty());
  const Json json =
      Paged::json_of(paged.parts.timeline(), [&](LaneNumber number, JsonWriter& out) {
        out.key("slowest").begin_array();
        write_slowest_json(std::span(calls).subspan(1, 1), number, out);
        out.end();
      });
  const size_t lane =
      static_cast<size_t>(&paged.lane(8) - paged.parts.timeline().lanes().data());
  CHECK(json["slowest"] ==
        Json::array({{lane, kStateLevels + 1, slow, slow + 201, 0, 0, 0}}));
}

TEST_CASE("page: processes stand in their tree, with their command lines") {
  RecordScript script;
  uint32_t parent = 0;
  const auto run = [&](uint32_t pid, const char* name, int64_t from_ns, int64_t to_ns) {
    const ThreadIndex thread = script.program(pid, name);
    Process& process =
        *script.definitions.mutable_process(script.definitions.threads()[thread].process);
    process.start_ns = from_ns;
    process.end_ns = to_ns;
    process.end_how = ARCTRACE_END_EXIT_DIRECT;
    process.end_status = static_cast<int32_t>(pid % 10);
    process.parent_id = parent;
    process.arguments = {name, "-o", "a file"};
    script.definitions.mutable_thread(thread)->start_ns = from_ns;
    script.enter(thread, from_ns, "f");
    script.exit(thread, to_ns);
    return process.id;
  };
  parent = run(100, "make", 0, 1000);
  const uint32_t make = parent;
  parent = run(110, "cc", 100, 700);
  run(111, "cc1", 200, 600);
  parent = make;
  run(120, "ld", 700, 900);
  Paged paged(script);
  const Json json = paged.processes();
  std::string tree;
  for (const Json& one : json["processes"]) {
    tree += std::string(one["depth"].get<size_t>(), ' ') +
            one["command"].get<std::string>() + " " + one["exit"].get<std::string>() +
            " " + one["wall_ns"].dump() + " " + one["lane"].dump() + "\n";
  }
  CHECK(tree ==
        "make -o 'a file' 0 1000 0\n"
        " cc -o 'a file' 0 600 1\n"
        "  cc1 -o 'a file' 1 400 2\n"
        " ld -o 'a file' 0 200 3\n");
  CHECK(json["process_count"] == 4);
}

TEST_CASE("page: rows of the critical path lead to where they were longest") {
  const KernelScript s = testing::one_wake_up();
  Session session;
  session.child_wait_status = 0;
  Paged paged(s.script, &session);
  const Json json = paged.critical();
  CHECK_FALSE(json["is_explanation"].get<bool>());  // of one process
  uint64_t sum_ns = 0, pieces_ns = 0;
  for (const Json& row : json["critical_path"]) {
    sum_ns += row["ns"].get<uint64_t>();
    CHECK(row["until_ns"].get<int64_t>() - row["at_ns"].get<int64_t>() >= 1);
    const Lane& lane = paged.parts.timeline().lanes()[row["lane"].get<size_t>()];
    CHECK(paged.replay.definitions().threads()[lane.thread].tid == row["tid"]);
  }
  CHECK(sum_ns == json["wall_ns"]);
  CHECK(json["grain_ns"] == 0);
  for (const Json& of_lane : json["pieces"]) {
    for (size_t i = 2; i < of_lane.size(); i += 2)
      pieces_ns += of_lane[i].get<uint64_t>();
  }
  CHECK(pieces_ns == json["wall_ns"]);
  CHECK(json["by_name"].size() >= 1);
}

TEST_CASE("page: many pieces of the path are joined to fewer that lie over them") {
  PathPieces pieces;
  for (int64_t i = 0; i < 1000; ++i) {
    pieces.push_back({static_cast<ThreadIndex>(i % 2), i * 100, i * 100 + 100});
  }
  uint64_t grain_ns = 1;
  CHECK(joined_pieces(pieces, 1000, grain_ns).size() == 1000);
  CHECK(grain_ns == 0);
  pieces.push_back({0, 500'000, 500'100});
  const PathPieces fewer = joined_pieces(pieces, 100, grain_ns);
  CHECK(grain_ns > 0);
  REQUIRE(fewer.size() == 3);
  CHECK(fewer[0].start_ns == 0);
  CHECK(fewer[0].stop_ns == 99'900);
  CHECK(fewer[1].start_ns == 500'000);
  CHECK(fewer[2].thread == 1);
}

}  // namespace
}  // namespace arctrace::reader
