// The view `kinds`: time by kinds of functions.
#include <doctest/doctest.h>

#include <array>
#include <map>
#include <set>

#include "reader/analysis/kind_totals.hpp"
#include "reader/report/views.hpp"
#include "tests/support/kernel_script.hpp"
#include "tests/support/naive_replay.hpp"
#include "tests/support/random_script.hpp"
#include "tests/unit/report/viewed.hpp"

using namespace arctrace::reader;
using namespace arctrace::testing;

namespace {

std::string kind_of(const std::string& name, std::string_view module = {}) {
  const auto kind = function_kind({module, name, {}});
  return kind ? std::string(kind_name(*kind)) : "none";
}

// main 100 ns: puts 30 with write 20 inside, malloc 5, malloc 7 with mmap 4 inside,
// pthread_mutex_lock 10, own work the rest.
RecordScript waits() {
  RecordScript script;
  const ThreadIndex t = script.program(7, "waits");
  script.enter(t, 0, "main");
  script.enter(t, 5, "puts");
  script.enter(t, 10, "write");
  script.exit(t, 30);
  script.exit(t, 35);
  script.enter(t, 40, "malloc");
  script.exit(t, 45);
  script.enter(t, 50, "malloc");
  script.enter(t, 51, "mmap");
  script.exit(t, 55);
  script.exit(t, 57);
  script.enter(t, 60, "pthread_mutex_lock");
  script.exit(t, 70);
  script.enter(t, 75, "work");
  script.exit(t, 80);
  script.exit(t, 100);
  return script;
}

}  // namespace

TEST_CASE("functions have the kind of what they do, variants that of their function") {
  CHECK(kind_of("pthread_mutex_lock") == "lock");
  CHECK(kind_of("pthread_cond_timedwait") == "condition");
  CHECK(kind_of("clock_nanosleep") == "sleep");
  CHECK(kind_of("open64") == "io");
  CHECK(kind_of("__open64_2") == "io");
  CHECK(kind_of("__read_chk") == "io");
  CHECK(kind_of("__isoc99_fscanf") == "io");
  CHECK(kind_of("__xstat64") == "file");
  CHECK(kind_of("operator new(unsigned long)") == "allocation");
  CHECK(kind_of("operator delete[](void*, unsigned long)") == "allocation");
  CHECK(kind_of("std::condition_variable::wait(std::unique_lock<std::mutex>&)") ==
        "condition");
  CHECK(kind_of("execve") == "process");
  CHECK(kind_of("strlen") == "none");
  CHECK(kind_of("reader") == "none");
  CHECK(kind_of("64") == "none");
  CHECK(kind_of("__") == "none");
  CHECK(kind_of("") == "none");
}

TEST_CASE("a program's own function with the name of a library's has no kind") {
  CHECK(kind_of("read", "/lib/x86_64-linux-gnu/libc.so.6") == "io");
  CHECK(kind_of("__lll_lock_wait", "/lib/x86_64-linux-gnu/libc.so.6") == "futex");
  CHECK(kind_of("malloc", "/usr/lib/libjemalloc.so.2") == "allocation");
  CHECK(kind_of("read", "/usr/bin/git") == "none");
  CHECK(kind_of("read", "/opt/libcurl.so") == "none");
}

TEST_CASE("kinds: exact sums, a call inside one of its kind counted once in cum") {
  const RecordScript script = waits();
  Viewed viewed(script);
  CHECK(viewed.text("kinds") == R"(
1 thread: 100 ns
       Calls   %Self  %Total         Self     Total ns  Kind
           2    30.0    30.0        30 ns           30  io
           1    10.0    30.0        10 ns           30    puts
           1    20.0    20.0        20 ns           20    write
           2     8.0    12.0         8 ns           12  allocation
           2     8.0    12.0         8 ns           12    malloc
           1    10.0    10.0        10 ns           10  lock
           1    10.0    10.0        10 ns           10    pthread_mutex_lock
           1     4.0     4.0         4 ns            4  memory
           1     4.0     4.0         4 ns            4    mmap
)");
  const Json io = viewed.json("kinds").at("kinds").at(0);
  CHECK(io.at("name") == "io");
  CHECK(io.at("calls") == 2);
  CHECK(io.at("base_ns") == 30);
  CHECK(io.at("cum_ns") == 30);
  CHECK(io.at("functions").at(0).at("name") == "puts");
  CHECK(io.at("functions").at(0).at("cum_ns") == 30);
  CHECK_FALSE(io.contains("cpu_ns"));
}

TEST_CASE("kinds: time on and off the CPU, a call inside one of its kind counted once") {
  KernelScript kernel;
  const ThreadIndex t = kernel.script.thread(kernel.process, 100);
  kernel.task(100);
  kernel.script.enter(t, 1000, "puts");
  kernel.script.enter(t, 1010, "write");
  kernel.leaves(100, 1020, false);
  kernel.woken(100, 1060);
  kernel.comes(100, 1070);
  kernel.script.exit(t, 1080);
  kernel.script.exit(t, 1100);
  Viewed viewed(kernel.script);
  const Json io = viewed.json("kinds").at("kinds").at(0);
  CHECK(io.at("cum_ns") == 100);
  CHECK(io.at("cpu_ns") == 50);
  CHECK(io.at("off_cpu_ns") == 50);
}

TEST_CASE("kinds: sorted, limited, by thread, filtered") {
  const RecordScript script = waits();
  {
    Viewed viewed(script);
    viewed.settings.options.sort = SortKey::kName;
    viewed.settings.options.limit = 3;
    const Json kinds = viewed.json("kinds").at("kinds");
    REQUIRE(kinds.size() == 3);
    CHECK(kinds.at(2).at("name") == "lock");
    CHECK(viewed.text("kinds").find("(1 row not shown)") != std::string::npos);
    CHECK(viewed.json("kinds", Grouping::kThread).at("threads").at(0).at("kinds") ==
          kinds);
    viewed.settings.options.sort = SortKey::kEntry;
    CHECK(viewed.json("kinds").at("kinds").at(1).at("name") == "allocation");
  }
  ReplayFilter filter;
  filter.from_ns = 20;
  filter.until_ns = 52;
  Viewed ranged(script);
  ranged.replay.filter = filter;
  const Json kinds = ranged.json("kinds").at("kinds");
  CHECK(kinds.at(0).at("cum_ns") == 15);  // puts from 20 to 35
  CHECK(kinds.at(1).at("cum_ns") == 7);   // malloc 5 and 2
  CHECK(kinds.at(2).at("name") == "memory");
  CHECK(kinds.size() == 3);
  ReplayFilter without;
  without.except = {"puts"};
  Viewed excepted(script);
  excepted.replay.filter = without;
  CHECK(excepted.json("kinds").at("kinds").at(0).at("name") == "allocation");
}

TEST_CASE("kinds: a trace without functions that have a kind") {
  const RecordScript script = treetest();
  Viewed viewed(script);
  CHECK(viewed.json("kinds").at("kinds").empty());
  CHECK(viewed.text("kinds").find("(no calls of functions of these kinds)") !=
        std::string::npos);
}

TEST_CASE("random traces: a kind's sums are what their definitions say") {
  RandomScript::Shape shape;
  shape.names = {"read", "write", "work", "flock", "more_work", "puts", "dlopen"};
  for (uint64_t seed = test_seed(); seed < test_seed() + 100; ++seed) {
    CAPTURE(seed);
    const RandomScript random(seed, shape);
    const RecordScript& script = random.script;
    std::map<ThreadIndex, NaiveThread> threads;
    for (const Record& record : script.records) {
      const auto name_of = [&](uint64_t key) {
        return std::string(*script.definitions.name(0, static_cast<uint32_t>(key)));
      };
      threads.try_emplace(record.thread, name_of).first->second.apply(record);
    }
    std::map<std::string, std::array<uint64_t, 3>> expected;
    for (auto& [index, thread] : threads) {
      thread.finish(script.end_ns());
      for (const auto& [path, sums] : thread.sums({})) {
        if (path.empty()) continue;
        const std::string self = kind_of(path.back());
        expected[self][0] += sums.calls;
        expected[self][1] += sums.self_ns;
        std::set<std::string> seen;
        for (const std::string& name : path) seen.insert(kind_of(name));
        for (const std::string& kind : seen) expected[kind][2] += sums.self_ns;
      }
    }
    expected.erase("none");
    Viewed viewed(script);
    std::map<std::string, std::array<uint64_t, 3>> found;
    const Json json = viewed.json("kinds");
    for (const Json& kind : json.at("kinds")) {
      found[kind.at("name")] = {kind.at("calls"), kind.at("base_ns"), kind.at("cum_ns")};
      uint64_t self_ns = 0;
      for (const Json& f : kind.at("functions")) self_ns += uint64_t{f.at("base_ns")};
      CHECK(kind.at("base_ns") == self_ns);
    }
    CHECK(found == expected);
  }
}
