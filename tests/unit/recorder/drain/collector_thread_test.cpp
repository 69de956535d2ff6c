// The CPU and the priority of the collector's thread.
#include "src/recorder/drain/collector_thread.hpp"

#include <doctest/doctest.h>
#include <sched.h>

#include <thread>

namespace arctrace::recorder {
namespace {

struct Runs {
  cpu_set_t cpus;
  int policy;
  int priority;
};

Runs runs_of_this_thread() {
  Runs runs{};
  sched_param param{};
  sched_getaffinity(0, sizeof runs.cpus, &runs.cpus);
  sched_getparam(0, &param);
  runs.policy = sched_getscheduler(0);
  runs.priority = param.sched_priority;
  return runs;
}

// How a thread runs that has become the collector's.
Runs runs_of(const CollectorThread& thread) {
  Runs runs{};
  std::thread([&] {
    become_collector_thread(thread);
    runs = runs_of_this_thread();
  }).join();
  return runs;
}

uint32_t last_cpu(const cpu_set_t& cpus) {
  uint32_t cpu = CPU_SETSIZE - 1;
  while (cpu != 0 && !CPU_ISSET(cpu, &cpus)) --cpu;
  return cpu;
}

TEST_CASE("a collector's thread runs where it is told, and the others as before") {
  const Runs before = runs_of_this_thread();
  CollectorThread thread;
  CHECK(check_collector_thread(thread).ok());
  const Runs usual = runs_of(thread);
  CHECK(CPU_EQUAL(&usual.cpus, &before.cpus));

  thread.cpu = last_cpu(before.cpus);
  REQUIRE(check_collector_thread(thread).ok());
  const Runs moved = runs_of(thread);
  CHECK(CPU_COUNT(&moved.cpus) == 1);
  CHECK(CPU_ISSET(*thread.cpu, &moved.cpus));
  CHECK(moved.policy == before.policy);

  thread.cpu.reset();
  thread.rt_priority = 3;
  const absl::Status permitted = check_collector_thread(thread);
  const Runs hurried = runs_of(thread);
  if (permitted.ok()) {
    CHECK(hurried.policy == (SCHED_FIFO | SCHED_RESET_ON_FORK));
    CHECK(hurried.priority == 3);
  } else {
    CHECK(permitted.message().find("--rt-priority: not permitted") == 0);
    CHECK(hurried.policy == before.policy);
  }

  const Runs after = runs_of_this_thread();
  CHECK(CPU_EQUAL(&after.cpus, &before.cpus));
  CHECK(after.policy == before.policy);
}

TEST_CASE("a CPU that is not there is refused by its number") {
  for (const uint32_t cpu : {100'000u, UINT32_MAX}) {
    CollectorThread thread;
    thread.cpu = cpu;
    const absl::Status status = check_collector_thread(thread);
    CHECK(status.message().find("--collector-cpu: this process can't run on CPU " +
                                std::to_string(cpu)) == 0);
  }
}

}  // namespace
}  // namespace arctrace::recorder
