// The section of the summary about a crash of which the thread is not recorded.
#include <csignal>
#include <string>
#include <vector>

#include "reader/trace/session.hpp"
#include "tests/unit/report/viewed.hpp"

using namespace arctrace::reader;
using namespace arctrace::testing;

namespace {

// The lines of the section, without its head.
std::vector<std::string> crash_lines(const std::string& text) {
  std::vector<std::string> lines;
  size_t at = text.find("Where it was");
  REQUIRE(at != std::string::npos);
  at = text.find('\n', at) + 1;
  while (at < text.size() && text[at] != '\n') {
    const size_t end = text.find('\n', at);
    lines.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return lines;
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
  const auto crash = [&] { return crash_lines(viewed.text("summary")); };
  using Lines = std::vector<std::string>;
  const std::string unknown =
      "  which thread got it is not recorded: record --kernel --signals does";
  CHECK(crash() == Lines{unknown,
                         "  likely thread server 7/7: main; last call: read, ended 5 ns "
                         "before",
                         "    because no other of its threads is recorded"});
  Json json = viewed.json("summary").at("crash");
  CHECK(json.dump() ==
        R"({"because":"only","is_likely":true,"last_call":"read","last_call_stop_ns":20,)"
        R"("path":["main"],"pid":7,"signal":11,"tid":7})");

  const ThreadIndex second = script.thread(process, 8, "worker");
  script.enter(second, 30, "work");
  const ThreadIndex third = script.thread(process, 9, "worker");
  script.enter(third, 40, "work");
  CHECK(crash()[1] == "  likely thread worker 7/9: work");
  CHECK(crash()[2] == "    because of 3 it has the last record before the end");
  CHECK(viewed.json("summary").at("crash").at("because") == "newest");

  script.enter(first, 50, "pthread_join");
  script.enter(third, 60, "poll");
  CHECK(crash()[1] == "  likely thread worker 7/8: work");
  CHECK(crash()[2] ==
        "    because it is the only one of 3 that was in no call that waits");

  // It is over for the thread; of others that wait, the last one to begin is likely.
  script.definitions.mutable_thread(second)->announced_ns = 45;
  CHECK(crash()[1] == "  likely thread worker 7/9: work > poll");

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
