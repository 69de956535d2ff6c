// The view "errors": which calls failed, with which errno.
#include <doctest/doctest.h>

#include <cerrno>

#include "tests/support/kernel_script.hpp"
#include "tests/unit/report/viewed.hpp"

using namespace arctrace::reader;
using namespace arctrace::testing;

namespace {

// A call of 100 ns that returns `result`, and errno unless that is 0.
void call(RecordScript& s, ThreadIndex thread, int64_t at_ns, const char* name,
          int result, int error) {
  s.enter(thread, at_ns, name);
  std::vector<ArgBytes> values = {
      number_arg(ARCTRACE_VALUE_SIGNED, 0, static_cast<uint64_t>(result), 4)};
  if (error != 0) {
    values.push_back(
        number_arg(ARCTRACE_VALUE_ERRNO, 0, static_cast<uint64_t>(error), 4));
  }
  s.result(thread, at_ns + 100, values);
  s.exit(thread, at_ns + 100);
}

// open fails three times of five, in two ways; pthread_mutex_trylock returns its error;
// nothing is known of what main and free return.
RecordScript failures() {
  RecordScript s;
  const ThreadIndex t = s.program(10, "one");
  s.enter(t, 0, "main");
  call(s, t, 1'000, "open", -1, ENOENT);
  call(s, t, 2'000, "open", 3, 0);
  call(s, t, 3'000, "open", -1, EACCES);
  call(s, t, 4'000, "open", 4, 0);
  call(s, t, 5'000, "open", -1, ENOENT);
  s.enter(t, 6'000, "pthread_mutex_trylock");
  s.result(t, 6'500, {number_arg(ARCTRACE_VALUE_ERRNO, 0, EBUSY, 4)});
  s.exit(t, 6'500);
  s.enter(t, 7'000, "pthread_mutex_trylock");
  s.result(t, 7'100, {number_arg(ARCTRACE_VALUE_ERRNO, 0, 0, 4)});
  s.exit(t, 7'100);
  s.enter(t, 8'000, "free");
  s.exit(t, 8'100);
  s.exit(t, 9'000);
  return s;
}

}  // namespace

TEST_CASE("errors: failed calls by function and errno, the most first") {
  const RecordScript script = failures();
  Viewed viewed(script);
  viewed.settings.options.sort = SortKey::kCalls;
  CHECK(viewed.text("errors") == R"(
    Errors  of Calls      Total    Longest  Error         Function
         2         5     200 ns     100 ns  ENOENT        open
         1         5     100 ns     100 ns  EACCES        open
         1         2     500 ns     500 ns  EBUSY         pthread_mutex_trylock

4 errors in 7 calls whose results are recorded
)");
  const Json json = viewed.json("errors");
  CHECK(json.at("results") == 7);
  REQUIRE(json.at("errors").size() == 3);
  CHECK(json.at("errors").at(0) == Json::parse(R"({"name": "open", "module": "",
      "errno": "ENOENT", "number": 2, "errors": 2, "calls": 5, "total_ns": 200,
      "max_ns": 100, "first_ns": 1100})"));
  viewed.settings.options.sort = SortKey::kTotal;
  viewed.settings.options.limit = 1;
  const Json longest = viewed.json("errors");
  REQUIRE(longest.at("errors").size() == 1);
  CHECK(longest.at("errors").at(0).at("name") == "pthread_mutex_trylock");
  CHECK(viewed.text("errors").find("(2 rows not shown)") != std::string::npos);
}

TEST_CASE("errors: only those of the time range") {
  const RecordScript script = failures();
  Viewed viewed(script);
  viewed.replay.filter.from_ns = 4'500;
  const Json json = viewed.json("errors");
  CHECK(json.at("results") == 3);
  REQUIRE(json.at("errors").size() == 2);
  CHECK(json.at("errors").at(0).at("errors") == 1);
}

TEST_CASE("errors: of system calls, whose results the kernel recorded") {
  KernelScript s;
  const ThreadIndex thread = s.script.thread(s.process, 100, "first");
  s.task(100);
  s.script.enter(thread, 1'000, "f");
  s.syscall(100, 1'100, 0);
  s.syscall_end(100, 1'200, -EAGAIN);
  s.syscall(100, 1'300, 0);
  s.syscall_end(100, 1'400, -4'096);  // an address, for all that is known
  s.script.exit(thread, 2'000);
  Viewed viewed(s.script);
  const Json json = viewed.json("errors");
  CHECK(json.at("results") == 2);
  REQUIRE(json.at("errors").size() == 1);
  CHECK(json.at("errors").at(0).at("name") == "K:read");
  CHECK(json.at("errors").at(0).at("errno") == "EAGAIN");
}

TEST_CASE("errors: of a trace without results say how to have them") {
  RecordScript s;
  const ThreadIndex t = s.program(10, "one");
  s.enter(t, 0, "main");
  s.exit(t, 100);
  Viewed viewed(s);
  CHECK(viewed.text("errors").find("no results of calls are recorded: record -a") !=
        std::string::npos);
  CHECK(viewed.json("errors") == Json::parse(R"({"results": 0, "errors": []})"));
}
