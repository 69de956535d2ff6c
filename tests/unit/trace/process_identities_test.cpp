// Which identities of a trace are one process.
#include "reader/trace/process_identities.hpp"

#include <doctest/doctest.h>

namespace arctrace::testing {
namespace {

using reader::Definitions;
using reader::Process;
using reader::ProcessIndex;

struct Identities {
  Definitions definitions;
  uint32_t count = 0;

  ProcessIndex add(uint32_t pid, int64_t start_ns, uint32_t origin, int64_t end_ns,
                   uint32_t end_how) {
    Process process;
    process.id = ++count;
    process.pid = pid;
    process.start_ns = start_ns;
    process.origin = origin;
    process.end_ns = end_ns;
    process.end_how = end_how;
    const ProcessIndex index = definitions.add_process(process);
    reader::Thread thread;
    thread.writer = count;
    thread.process = index;
    thread.tid = pid;
    definitions.add_thread(thread);
    return index;
  }
};

using Joined = std::vector<std::vector<ProcessIndex>>;

TEST_CASE("identities: a child that executes programs is one process") {
  Identities its;
  its.add(10, 0, ARCTRACE_ORIGIN_EXEC, 100, ARCTRACE_END_EXIT);
  // The definitions of a program may come before those of what executed it.
  its.add(11, 30, ARCTRACE_ORIGIN_EXEC, 40, ARCTRACE_END_EXEC);
  its.add(11, 20, ARCTRACE_ORIGIN_FORK, 29, ARCTRACE_END_EXEC);
  its.add(11, 50, ARCTRACE_ORIGIN_EXEC, INT64_MAX, ARCTRACE_END_NONE);
  CHECK(join_identities(its.definitions) == Joined{{0}, {2, 1, 3}});
  const std::vector<reader::ThreadIndex> threads = {0, 1, 2, 3};
  const reader::ProcessesAndThreads joined = count_joined(its.definitions, threads);
  CHECK(joined.processes == 2);
  CHECK(joined.threads == 2);
}

TEST_CASE("identities: another process may have the same number") {
  Identities its;
  its.add(10, 0, ARCTRACE_ORIGIN_EXEC, 10, ARCTRACE_END_EXIT);
  its.add(10, 20, ARCTRACE_ORIGIN_EXEC, 30, ARCTRACE_END_EXIT_DIRECT);
  its.add(10, 40, ARCTRACE_ORIGIN_FORK, 50, ARCTRACE_END_EXEC);
  Process elsewhere;
  elsewhere.id = 9;
  elsewhere.pid = 10;
  elsewhere.pid_namespace = 7;
  elsewhere.start_ns = 60;
  elsewhere.origin = ARCTRACE_ORIGIN_EXEC;
  its.definitions.add_process(elsewhere);
  CHECK(join_identities(its.definitions) == Joined{{0}, {1}, {2}, {3}});
  const std::vector<reader::ThreadIndex> threads = {0, 1, 2};
  CHECK(count_joined(its.definitions, threads).processes == 3);
  CHECK(count_joined(its.definitions, threads).threads == 3);
}

TEST_CASE("identities: threads that are not a process' first one count each") {
  Identities its;
  const ProcessIndex before = its.add(10, 0, ARCTRACE_ORIGIN_FORK, 10, ARCTRACE_END_EXEC);
  const ProcessIndex after = its.add(10, 20, ARCTRACE_ORIGIN_EXEC, 30, ARCTRACE_END_EXIT);
  std::vector<reader::ThreadIndex> threads = {0, 1};
  for (const ProcessIndex process : {before, after, reader::kNoIndex}) {
    reader::Thread thread;
    thread.writer = 100 + process;
    thread.process = process;
    thread.tid = 11;
    threads.push_back(its.definitions.add_thread(thread));
  }
  CHECK(count_joined(its.definitions, threads).processes == 2);  // one is not known
  CHECK(count_joined(its.definitions, threads).threads == 4);
}

}  // namespace
}  // namespace arctrace::testing
