// The section of the summary about a crash.
#include <sys/wait.h>

#include <algorithm>
#include <csignal>
#include <string>
#include <vector>

#include "reader/trace/session.hpp"
#include "tests/support/kernel_script.hpp"
#include "tests/unit/report/viewed.hpp"

using namespace arctrace::reader;
using namespace arctrace::testing;

namespace {

// The section about a crash, without a newline at its end.
std::string crash_text(Viewed& viewed) {
  const std::string text = viewed.text("summary");
  const size_t begin = text.find("Where it was");
  REQUIRE(begin != std::string::npos);
  return text.substr(begin, text.find("\n\n", begin) - begin);
}

// The lines of the section, without its head.
std::vector<std::string> crash_lines(Viewed& viewed) {
  return section_lines(viewed.text("summary"), "Where it was");
}

}  // namespace

TEST_CASE("summary: the likely thread of a crash") {
  RecordScript script;
  const ProcessIndex process = script.process(7, "/bin/server");
  const ThreadIndex first = script.thread(process, 7, "server");
  script.enter(first, 0, "main");
  script.enter(first, 10, "read");
  script.exit(first, 20);
  script.text(first, 25, "a text");
  Viewed viewed(script);
  Session session;
  session.child_wait_status = SIGSEGV;
  viewed.settings.session = &session;
  const auto crash = [&] { return crash_lines(viewed); };
  using Lines = std::vector<std::string>;
  const std::string unknown =
      "  which thread got it is not recorded: record --kernel --signals does";
  CHECK(crash() == Lines{unknown,
                         "  likely thread server 7/7: main; last call: read, ended 5 ns "
                         "before the end",
                         "    because no other of its threads is recorded"});
  Json json = viewed.json("summary").at("crash");
  CHECK(json.dump() ==
        R"({"because":"only","is_likely":true,"last_call":"read","last_call_stop_ns":20,)"
        R"("path":["main"],"pid":7,"signal":11,"tid":7})");

  const ThreadIndex second = script.thread(process, 8, "worker");
  script.enter(second, 30, "work");
  const ThreadIndex third = script.thread(process, 9, "worker");
  script.enter(third, 40, "work");
  // Which of them wrote last tells nothing.
  CHECK(crash() ==
        Lines{unknown, "  it is one of the first 3: they were in no call that waits",
              "  server 7/7: main; last call: read, ended 20 ns before the end",
              "  worker 7/8: work", "  worker 7/9: work"});
  json = viewed.json("summary").at("crash");
  CHECK(json.dump() ==
        R"({"possible_threads":[{"pid":7,"tid":7},{"pid":7,"tid":8},{"pid":7,"tid":9}],)"
        R"("signal":11})");

  script.enter(first, 45, "pthread_join");
  const std::string waiting =
      "  server 7/7: main > pthread_join; last call: read, ended 25 ns before the end";
  CHECK(crash() == Lines{unknown,
                         "  it is one of the first 2: they were in no call that waits",
                         "  worker 7/8: work", "  worker 7/9: work", waiting});
  script.exit(first, 48);
  script.enter(first, 50, "pthread_join");
  script.enter(third, 60, "poll");
  CHECK(crash()[1] == "  likely thread worker 7/8: work");
  CHECK(crash()[2] ==
        "    because it is the only one of 3 that was in no call that waits");

  // It is over for the thread, and the others wait.
  script.definitions.mutable_thread(second)->announced_ns = 45;
  CHECK(crash()[1].find("likely") == std::string::npos);
  CHECK(crash()[1].find("one of") == std::string::npos);

  // A signal from outside may come upon any thread.
  session.child_wait_status = SIGTERM;
  CHECK(crash()[0] == unknown);
  CHECK(crash()[1].find("likely") == std::string::npos);
  CHECK(viewed.json("summary").at("crash").dump() == R"({"signal":15})");
  session.child_wait_status = SIGABRT;
  CHECK(crash()[1].find("likely") == std::string::npos);
  script.enter(first, 70, "abort");
  CHECK(crash()[2] ==
        "    because it is the only one of 2 that was in abort, or what calls it");
  session.child_wait_status = 0;
  CHECK(!viewed.json("summary").contains("crash"));
}

TEST_CASE("summary: threads that had ended before the signal came are not among those") {
  RecordScript script;
  const ProcessIndex process = script.process(7, "/bin/server");
  const ProcessIndex child = script.process(8, "/bin/child");
  const ThreadIndex thread = script.thread(process, 7, "server");
  const ThreadIndex others = script.thread(child, 8, "child");
  script.enter(others, 0, "early");
  script.enter(thread, 10, "bad");
  Process& ended = *script.definitions.mutable_process(child);
  ended.end_how = ARCTRACE_END_EXIT;
  ended.end_ns = 5;
  Viewed viewed(script);
  Session session;
  session.child_wait_status = SIGTERM;
  viewed.settings.session = &session;
  CHECK(crash_text(viewed).find("server 7/7: bad") != std::string::npos);
  CHECK(crash_text(viewed).find("early") == std::string::npos);
  // The command may have begun to end when the signal came.
  script.definitions.mutable_process(child)->wait_status = SIGTERM;
  CHECK(crash_text(viewed).find("child 8/8: early") != std::string::npos);
  // The time of a signal that was seen tells more.
  script.definitions.mutable_process(child)->wait_status.reset();
  script.add(thread, 20, ARCTRACE_TYPE_SIGNAL, Bytes().u32(0).u32(7).u32(SIGTERM).u32(0));
  CHECK(crash_text(viewed).find("early") == std::string::npos);
}

TEST_CASE("summary: a program that was killed") {
  RecordScript script;
  const ProcessIndex process = script.process(7, "/bin/server");
  const ThreadIndex t = script.thread(process, 7, "server");
  script.enter(t, 0, "main");
  script.enter(t, 10, "read");
  script.exit(t, 20);
  script.enter(t, 100, "bad");
  const ThreadIndex other = script.thread(process, 8, "worker");
  script.enter(other, 100, "wait");
  Viewed viewed(script);
  Session session;
  session.child_wait_status = SIGSEGV;
  viewed.settings.session = &session;
  const std::string text = viewed.text("summary");
  CHECK(text.find("killed by signal 11 (Segmentation fault)") != std::string::npos);
  CHECK(text.find("which thread got it is not recorded") != std::string::npos);
  CHECK(text.find(
            "server 7/7: main > bad; last call: read, ended 80 ns before the end\n") !=
        std::string::npos);
  CHECK(text.find("worker 7/8: wait\n") != std::string::npos);
  CHECK(text.find("nor when") == std::string::npos);
  session.child_wait_status = SIGSEGV | WCOREFLAG;
  CHECK(viewed.text("summary").find(
            "--signals does\n"
            "  nor when: writing the core counts for the functions that were open\n") !=
        std::string::npos);
  session.child_wait_status = 0;
  CHECK(viewed.text("summary").find("exit 0") != std::string::npos);
  CHECK(viewed.text("summary").find("Where it was") == std::string::npos);
}

TEST_CASE("summary: the thread that a signal came upon stands once") {
  RecordScript script;
  const ProcessIndex process = script.process(7, "/bin/server");
  const ThreadIndex other = script.thread(process, 7, "server");
  script.enter(other, 0, "main");
  const ThreadIndex t = script.thread(process, 8, "worker");
  script.enter(t, 0, "work");
  script.enter(t, 10, "read");
  script.exit(t, 20);
  script.enter(t, 30, "bad");
  script.add(t, 100, ARCTRACE_TYPE_SIGNAL, Bytes().u32(0).u32(7).u32(SIGSEGV).u32(0));
  Viewed viewed(script);
  Session session;
  session.child_wait_status = SIGSEGV;
  viewed.settings.session = &session;
  CHECK(crash_text(viewed) ==
        "Where it was when signal 11 (Segmentation fault) came\n"
        "  thread worker 7/8: work > bad; last call: read, ended 80 ns before\n"
        "  server 7/7: main");

  script.enter(t, 110, "handler");
  session.child_wait_status = (128 + SIGSEGV) << 8;  // the handler ended it so
  CHECK(crash_text(viewed) ==
        "Where it was when signal 11 (Segmentation fault) came\n"
        "  thread worker 7/8: work > bad; last call: read, ended 80 ns before\n"
        "    it ended in work > bad > handler\n"
        "  server 7/7: main");
  script.enter(t, 120, "write");
  script.exit(t, 130);
  script.exit(other, 200);
  CHECK(crash_text(viewed) ==
        "Where it was when signal 11 (Segmentation fault) came\n"
        "  thread worker 7/8: work > bad\n"
        "    it ended in work > bad > handler; last call: write, ended 70 ns before the "
        "end\n"
        "  server 7/7: no open function; last call: main, ended <1 ns before the end");
}

TEST_CASE("summary: what was before a signal is reckoned to the signal") {
  RecordScript script;
  const ProcessIndex process = script.process(7, "/bin/server");
  const ThreadIndex other = script.thread(process, 7, "server");
  script.enter(other, 0, "main");
  script.enter(other, 10, "read");
  script.exit(other, 60);
  const ThreadIndex t = script.thread(process, 8, "worker");
  script.enter(t, 0, "work");
  script.enter(t, 10, "read");
  script.exit(t, 20);
  script.enter(t, 30, "bad");
  script.add(t, 100, ARCTRACE_TYPE_SIGNAL,
             Bytes().u32(0).u32(7).u32(SIGSEGV).u32(0).u64(0x1010));
  // The kernel writes a core file, and takes the process down.
  for (const ThreadIndex thread : {other, t}) script.text(thread, 900, "gone");
  Module module;
  module.start = 0x1000;
  module.end = 0x2000;
  module.path = "/bin/server";
  script.definitions.mutable_process(process)->modules = {module};
  Viewed viewed(script);
  Session session;
  session.child_wait_status = SIGSEGV;
  viewed.settings.session = &session;
  const std::string head =
      "Where it was when signal 11 (Segmentation fault) came\n"
      "  thread worker 7/8: work > bad; last call: read, ended 80 ns before\n";
  const std::string others = "  server 7/7: main; last call: read, ended 40 ns before";
  CHECK(crash_text(viewed) ==
        head + "    it was in server+0x1010, which is not recorded\n" + others);
  // There are the moved instructions of functions of the path.
  script.definitions.mutable_process(process)->modules.front().path = "[arctrace]";
  CHECK(crash_text(viewed) == head + others);
}

TEST_CASE("summary: of many threads of a crash, how many are not shown") {
  RecordScript script;
  const ProcessIndex process = script.process(7, "/bin/server");
  for (uint32_t tid = 7; tid < 14; ++tid) {
    const ThreadIndex t = script.thread(process, tid, "worker" + std::to_string(tid - 7));
    for (int64_t i = 0; i < 9; ++i) {
      script.enter(t, 100 * i, "f" + std::to_string(i));
      script.enter(t, 100 * i + 30, "g");
      script.exit(t, 100 * i + 99);
      script.exit(t, 100 * i + 99);
    }
    script.enter(t, 900, "wait");
  }
  script.text(kNoIndex, 1000, "the end");
  Viewed viewed(script);
  Session session;
  session.child_wait_status = SIGSEGV;
  viewed.settings.session = &session;
  for (const uint64_t limit : {UINT64_MAX, uint64_t{2}}) {
    CAPTURE(limit);
    viewed.settings.options.limit = limit;
    const std::vector<std::string> lines = crash_lines(viewed);
    CHECK(lines.front().find("which thread got it is not recorded") != std::string::npos);
    const auto shown = std::count_if(
        lines.begin(), lines.end(),
        [](const std::string& line) { return line.find(": wait") != std::string::npos; });
    CHECK(shown >= 1);
    CHECK(lines.back() == "  " + std::to_string(7 - shown) + " more threads");
  }
}

namespace {

// The lines of the section about other programs, without its head, which is the first.
std::vector<std::string> other_lines(Viewed& viewed, const std::string& head) {
  return section_lines(viewed.text("summary"), head);
}

// Has the kernel tell that the process of the thread ends with this status.
void ends(KernelScript& script, uint32_t tid, int64_t time_ns, int32_t status,
          arctrace_status_of of = ARCTRACE_STATUS_OF_PROCESS) {
  script.add(tid, time_ns, ARCTRACE_TYPE_EXITED,
             Bytes().u32(static_cast<uint32_t>(status)).u32(of));
}

}  // namespace

TEST_CASE("summary: programs other than the command that a signal ended") {
  KernelScript script;
  const ThreadIndex shell = script.script.thread(script.process, 100, "sh");
  script.script.definitions.mutable_process(script.process)->wait_status = 139 << 8;
  const ProcessIndex child = script.script.process(101, "/bin/crash");
  const ThreadIndex crashes = script.script.thread(child, 101, "crash");
  const ProcessIndex piped = script.script.process(102, "/bin/yes");
  const ThreadIndex yes = script.script.thread(piped, 102, "yes");
  const ThreadIndex worker = script.script.thread(child, 103, "worker");
  for (const uint32_t tid : {100u, 101u, 102u, 103u}) script.task(tid);
  script.script.enter(shell, 1000, "main");
  script.script.enter(crashes, 1000, "walk");
  script.script.enter(yes, 1000, "write");
  script.script.enter(worker, 1000, "work");
  SUBCASE("which thread got it is known") {
    script.signal(101, 1300, SIGSEGV, ARCTRACE_SIGNAL_DEFAULT);
    ends(script, 101, 1400, SIGSEGV | WCOREFLAG);
    ends(script, 103, 1450, 5, ARCTRACE_STATUS_OF_THREAD);
    ends(script, 102, 1500, SIGPIPE);
    Viewed viewed(script.script);
    CHECK(
        other_lines(viewed, "Other programs that a signal ended") ==
        std::vector<std::string>{"  crash 101: signal 11 (Segmentation fault) in walk"});
    CHECK(viewed.json("summary").at("other_crashes").dump() ==
          R"([{"name":"crash","path":["walk"],"pid":101,"signal":11,"tid":101}])");
    // The shell's own end is not one of them, nor is a pipe's.
    const Json rows = viewed.json("processes").at("processes");
    CHECK(rows.dump().find(R"("exits":{"signal 11":1})") != std::string::npos);
    CHECK(rows.dump().find(R"("exits":{"signal 13":1})") != std::string::npos);
  }
  SUBCASE("which thread got it is not known") {
    ends(script, 101, 1400, SIGABRT);
    Viewed viewed(script.script);
    CHECK(other_lines(viewed, "Other programs that a signal ended") ==
          std::vector<std::string>{"  crash 101: signal 6 (Aborted)",
                                   "  where, record --kernel --signals tells"});
  }
  SUBCASE("none did") {
    ends(script, 101, 1400, 3 << 8);
    Viewed viewed(script.script);
    CHECK(viewed.text("summary").find("Other programs") == std::string::npos);
    CHECK(viewed.json("summary").at("other_crashes").empty());
    CHECK(viewed.json("processes").at("processes").dump().find(R"("exits":{"3":1})") !=
          std::string::npos);
  }
}

TEST_CASE("summary: programs that did not end by exit, without the kernel's records") {
  RecordScript script;
  const ProcessIndex command = script.process(7, "/bin/sh");
  const ProcessIndex child = script.process(8, "/bin/crash");
  const ProcessIndex lives = script.process(9, "/bin/daemon");
  for (const ProcessIndex process : {command, child, lives}) {
    const uint32_t pid = script.definitions.processes()[process].pid;
    script.enter(script.thread(process, pid), 10, "f");
  }
  script.definitions.mutable_process(command)->wait_status = 0;
  script.definitions.mutable_process(command)->died_ns = 50;
  script.definitions.mutable_process(child)->died_ns = 40;
  Viewed viewed(script);
  CHECK(other_lines(viewed, "Other programs that did not end by exit()") ==
        std::vector<std::string>{
            "  crash 8: by a signal, or by a system call of its own",
            "  how, record --kernel=bpf tells, and where, with --signals"});
  CHECK(viewed.json("summary").at("other_crashes").dump() ==
        R"([{"name":"crash","pid":8}])");
}
