// The tree of commands, and how long threads and requests waited.
#include <doctest/doctest.h>

#include <algorithm>
#include <csignal>
#include <map>
#include <optional>
#include <string>

#include "reader/report/views.hpp"
#include "tests/support/kernel_script.hpp"
#include "tests/unit/report/viewed.hpp"

using namespace arctrace::reader;
using namespace arctrace::testing;

namespace {

// A shell that runs cc once, by fork and exec, and echo twice, by fork alone.
RecordScript shell() {
  RecordScript s;
  uint32_t shell_id = 0;
  const auto program = [&](uint32_t pid, const std::string& name, uint32_t origin,
                           int64_t from, int64_t to, uint32_t how, int32_t status) {
    const ThreadIndex thread = s.program(pid, name, origin);
    Process& process =
        *s.definitions.mutable_process(s.definitions.threads()[thread].process);
    process.start_ns = from;
    process.end_ns = to;
    process.end_how = how;
    process.end_status = status;
    process.parent_id = shell_id;
    s.definitions.mutable_thread(thread)->start_ns = from;
    s.enter(thread, from, "f");
    s.exit(thread, to);
    return process.id;
  };
  constexpr uint32_t kDirect = ARCTRACE_END_EXIT_DIRECT;
  shell_id = program(100, "sh", ARCTRACE_ORIGIN_EXEC, 0, 1000, ARCTRACE_END_EXIT, -1);
  program(101, "sh", ARCTRACE_ORIGIN_FORK, 100, 120, ARCTRACE_END_EXEC, -1);
  const uint32_t shell_of_cc = shell_id;
  shell_id = 0;
  program(101, "cc", ARCTRACE_ORIGIN_EXEC, 150, 500, kDirect, 3);
  shell_id = shell_of_cc;
  program(102, "echo", ARCTRACE_ORIGIN_FORK, 500, 510, kDirect, 0);
  program(103, "echo", ARCTRACE_ORIGIN_FORK, 600, 640, kDirect, 1);
  return s;
}

TEST_CASE("processes: a command is what its process became, and those alike are one") {
  const RecordScript s = shell();
  Viewed viewed(s);
  const Json json = viewed.json("processes");
  REQUIRE(json["processes"].size() == 1);
  const Json& sh = json["processes"][0];
  CHECK(sh["name"] == "sh");
  CHECK(sh["runs"] == 1);
  CHECK(sh["wall_ns"] == 1000);
  CHECK(sh["exits"] == Json::parse(R"({"exited": 1})"));
  REQUIRE(sh["children"].size() == 2);
  const Json& cc = sh["children"][0];
  CHECK(cc["name"] == "cc");
  CHECK(cc["pid"] == 101);
  CHECK(cc["wall_ns"] == 400);  // the fork's too
  CHECK(cc["exits"] == Json::parse(R"({"3": 1})"));
  const Json& echo = sh["children"][1];
  CHECK(echo["runs"] == 2);
  CHECK(echo["wall_ns"] == 50);
  CHECK(echo["longest_ns"] == 40);
  CHECK(echo["exits"] == Json::parse(R"({"0": 1, "1": 1})"));
  const std::string text = viewed.text("processes");
  CHECK(text.find("  sh  100\n") != std::string::npos);
  CHECK(text.find("    echo  exit 0 (1), 1 (1)\n") != std::string::npos);
}

TEST_CASE("processes: how one ended that did not record it") {
  RecordScript s;
  const auto program = [&](uint32_t pid, int64_t died_ns,
                           std::optional<int32_t> wait_status) {
    const ThreadIndex thread = s.program(pid, "p" + std::to_string(pid));
    Process& process =
        *s.definitions.mutable_process(s.definitions.threads()[thread].process);
    process.died_ns = died_ns;
    process.wait_status = wait_status;
    s.enter(thread, 10, "f");
  };
  constexpr int32_t kExit3 = 3 << 8;
  program(1, 50, SIGTERM);
  program(2, 50, kExit3);
  program(3, 50, std::nullopt);
  program(4, INT64_MAX, std::nullopt);
  Viewed viewed(s);
  std::map<std::string, std::string> exits;
  const Json json = viewed.json("processes");
  for (const Json& command : json["processes"]) {
    exits[command["name"]] = command["exits"].begin().key();
  }
  CHECK(exits ==
        std::map<std::string, std::string>{
            {"p1", "signal 15"}, {"p2", "3"}, {"p3", "not known"}, {"p4", "open"}});
}

// Three runs of "job", two of which did not record their end: the collector saw one end
// soon, and the other one when the recording ended.
TEST_CASE("processes: a life of which the end is not known is not a long one") {
  RecordScript s;
  const ThreadIndex shell = s.program(100, "sh");
  s.enter(shell, 0, "wait");
  s.exit(shell, 1000);
  const auto job = [&](uint32_t pid, int64_t from, int64_t alive, int64_t seen) {
    const ThreadIndex index = s.program(pid, "job");
    Thread& thread = *s.definitions.mutable_thread(index);
    Process& process = *s.definitions.mutable_process(thread.process);
    process.start_ns = thread.start_ns = from;
    process.died_ns = thread.end_ns = seen;
    thread.alive_ns = alive;
    s.enter(index, from, "f");
    s.exit(index, from + 10);
    return thread.process;
  };
  Process& whole = *s.definitions.mutable_process(job(1, 0, 50, 50));
  whole.end_ns = 50;
  whole.end_how = ARCTRACE_END_EXIT;
  job(2, 100, 160, 180);
  Viewed soon(s);
  const Json known = soon.json("processes")["processes"][1];
  CHECK(known["wall_ns"] == 50 + 80);
  CHECK(known["longest_ns"] == 80);
  CHECK(known["end_within_ns"] == 20);
  CHECK(known["ends_not_known"] == 0);
  CHECK(soon.text("processes").find("  ended up to 20 ns earlier\n") !=
        std::string::npos);
  job(3, 200, 210, 900);
  Viewed late(s);
  const Json job_row = late.json("processes")["processes"][1];
  CHECK(job_row["runs"] == 3);
  CHECK(job_row["wall_ns"] == 50 + 80);
  CHECK(job_row["longest_ns"] == 80);
  CHECK(job_row["end_within_ns"] == 20);
  CHECK(job_row["ends_not_known"] == 1);
  CHECK(
      late.text("processes").find("  ended up to 20 ns earlier, end of 1 not known\n") !=
      std::string::npos);
}

TEST_CASE("processes: a command has the name by which it was called") {
  RecordScript s;
  // The child of the first process has another title. Processes from 103 on were joined
  // as they ran, and the last three have no such name.
  uint32_t pid = 100;
  for (const std::vector<std::string>& arguments :
       std::initializer_list<std::vector<std::string>>{
           {"/usr/bin/redis-server", "*:6379"},
           {"redis-bgsave *:6379"},
           {"-sh"},
           {"redis: a title"},
           {"redis-sentinel *:26379 [sentinel]"},
           {"/proc/self/exe"},
           {"/opt/key value/redis"},
           {}}) {
    const bool is_child = pid == 101;
    const ProcessIndex p =
        s.process(pid, "/usr/bin/redis-check-rdb",
                  is_child ? ARCTRACE_ORIGIN_FORK : ARCTRACE_ORIGIN_EXEC);
    Process& process = *s.definitions.mutable_process(p);
    process.arguments = arguments;
    process.start_ns = pid;
    if (is_child) process.parent_id = s.definitions.processes()[0].id;
    if (pid < 103) process.main_ns = pid;
    const ThreadIndex t = s.thread(p, pid);
    s.enter(t, pid, "f");
    s.exit(t, pid + 10);
    ++pid;
  }
  const std::string text = Viewed(s).text("processes");
  CHECK(text.find("  redis-server  100\n") != std::string::npos);
  CHECK(text.find("    redis-server  101\n") != std::string::npos);
  CHECK(text.find("  sh  102\n") != std::string::npos);
  CHECK(text.find("  redis  103\n") != std::string::npos);
  CHECK(text.find("  redis-sentinel  104\n") != std::string::npos);
  CHECK(text.find("       3 ") != std::string::npos);
  CHECK(text.find("  redis-check-rdb\n") != std::string::npos);
}

TEST_CASE("processes: waits for a CPU and for disks by latency") {
  KernelScript s = one_wake_up();
  const auto request = [&](uint16_t type, int64_t time, uint64_t sector, uint32_t bytes) {
    s.add(100, time, type, Bytes().u64(sector).u32(8).u32(bytes).u32(1).u32(0));
  };
  request(ARCTRACE_TYPE_BLOCK_IO, 1400, 64, 8192);
  request(ARCTRACE_TYPE_BLOCK_IO_END, 1500, 64, 4096);  // the first half
  request(ARCTRACE_TYPE_BLOCK_IO_END, 1700, 72, 4096);
  request(ARCTRACE_TYPE_BLOCK_IO_END, 1800, 99, 4096);  // belongs to no known request
  std::stable_sort(
      s.script.records.begin(), s.script.records.end(),
      [](const Record& a, const Record& b) { return a.time_ns < b.time_ns; });
  Viewed viewed(s.script);
  const Json json = viewed.json("processes");
  CHECK(viewed.text("processes")
            .find("50 ns  for a CPU, once woken (preempted threads are not counted)\n") !=
        std::string::npos);
  CHECK(json["run_queue"]["count"] == 1);
  CHECK(json["run_queue"]["max_ns"] == 50);
  REQUIRE(json["disk_requests"].size() == 1);
  CHECK(json["disk_requests"][0]["operation"] == "write");
  CHECK(json["disk_requests"][0]["count"] == 1);
  CHECK(json["disk_requests"][0]["max_ns"] == 300);
}

}  // namespace
