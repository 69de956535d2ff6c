// The processes of threads that only the kernel's records name.
#include <doctest/doctest.h>

#include <string>
#include <string_view>
#include <vector>

#include "reader/trace/trace.hpp"
#include "tests/support/trace_builder.hpp"
#include "tests/unit/trace/collected.hpp"

namespace arctrace::testing {
namespace {

using reader::Definitions;
using reader::Thread;
using reader::Trace;

// A block of one CPU's records.
class CpuBlock {
 public:
  CpuBlock() { block_.header.writer = ARCTRACE_WRITER_KERNEL; }
  CpuBlock& switches(uint32_t tid, uint32_t tgid) {
    return add(ARCTRACE_TYPE_SWITCH, tid, tgid, Bytes().u32(0).u32(0).u32(0));
  }
  CpuBlock& forks(uint32_t tid, uint32_t tgid, uint32_t child, uint32_t child_tgid) {
    return add(ARCTRACE_TYPE_FORKED, tid, tgid, Bytes().u32(child).u32(child_tgid));
  }
  CpuBlock& named(uint16_t type, uint32_t tid, uint32_t tgid, std::string_view name) {
    Bytes rest;
    rest.padded(name);
    rest.fill(16 - rest.size(), 0);
    return add(type, tid, tgid, rest);
  }
  CpuBlock& interrupted(uint32_t tid, uint32_t tgid, std::string_view name) {
    Bytes rest = Bytes().u32(ARCTRACE_INTERRUPT_DEVICE).u32(36).u64(7).u32(name.size());
    rest.padded(name);
    return add(ARCTRACE_TYPE_INTERRUPT, tid, tgid, rest);
  }
  const BlockBuilder& block() const { return block_; }

 private:
  CpuBlock& add(uint16_t type, uint32_t tid, uint32_t tgid, const Bytes& rest) {
    Bytes body = Bytes().u32(0).u32(tgid);
    body.append(rest);
    block_.add_full(type, ARCTRACE_WRITER_KERNEL | tid, ++time_ns_, body);
    return *this;
  }

  BlockBuilder block_ = BlockBuilder::shared(2, 0);
  uint64_t time_ns_ = 100;
};

// The types of the kernel's records.
std::vector<uint16_t> collect_types(Trace& trace) {
  std::vector<uint16_t> types;
  for (const CollectedRecord& r : collect(trace)) {
    if (r.record.type >= ARCTRACE_TYPE_SWITCH) types.push_back(r.record.type);
  }
  return types;
}

// "name of pid" of a frames-only thread; "" for others.
std::string silent_text(const Definitions& definitions, uint32_t tid) {
  const Thread* thread =
      definitions.thread(definitions.find_thread(ARCTRACE_WRITER_KERNEL | tid));
  REQUIRE(thread != nullptr);
  if (!thread->is_silent) return "";
  const reader::Process* process = definitions.process(thread->process);
  return (thread->names.empty() ? "" : thread->names.back().name) + " of " +
         (process == nullptr ? "none" : process->executable);
}

}  // namespace

TEST_CASE("threads are silent if their process is recorded") {
  FileBuilder file;
  file.header.creator_pid = 60;
  ProcessFacts facts;
  facts.pid = 70;
  facts.executable = "/bin/program";
  file.program(facts, 1, "main", 0);
  file.block(
      BlockBuilder::shared(1, 0, ARCTRACE_CLASS_DEFINITIONS)
          .add_full(ARCTRACE_TYPE_THREAD, 2, 1, thread_body(2, 1, 72, "worker", 1)),
      0, 1);
  file.block(CpuBlock()
                 .switches(70, 70)       // the program's first thread
                 .switches(71, 70)       // another one of it
                 .switches(72, 70)       // one that has written its name
                 .forks(70, 70, 90, 90)  // a child
                 .named(ARCTRACE_TYPE_EXECED, 90, 90, "static")
                 .switches(91, 90)       // the child's second thread
                 .forks(70, 70, 95, 95)  // one that does not execute anything
                 .switches(95, 95)
                 .named(ARCTRACE_TYPE_EXECED, 96, 96, "another")
                 .switches(200, 200)  // another program
                 .named(ARCTRACE_TYPE_NAMED, 300, 300, "others")
                 .forks(300, 300, 301, 300)  // contradicts that
                 .switches(301, 300)
                 .switches(0, 0)           // no thread
                 .forks(60, 60, 400, 400)  // a child of the recorder's own
                 .switches(400, 400)
                 .forks(60, 60, 401, 401)  // and one that runs the command
                 .named(ARCTRACE_TYPE_EXECED, 401, 401, "command")
                 .block(),
             0, 2);
  file.finish(200);
  Trace trace = open_bytes(file.file());
  collect(trace);
  const Definitions& definitions = trace.definitions();
  CHECK(silent_text(definitions, 70) == " of none");
  CHECK(silent_text(definitions, 71) == " of /bin/program");
  CHECK(silent_text(definitions, 72) == " of none");
  CHECK(silent_text(definitions, 90) == "static of static");
  CHECK(silent_text(definitions, 91) == "static of static");
  CHECK(silent_text(definitions, 95) == " of ");
  CHECK(silent_text(definitions, 96) == "another of another");
  for (const uint32_t tid : {200u, 300u, 301u, 0u, 60u, 400u})
    CHECK(silent_text(definitions, tid) == "");
  CHECK(silent_text(definitions, 401) == "command of command");
  CHECK(definitions.processes().size() == 5);
  // 70 and 72 have records themselves; 71, 90, 91, 95, 96 and 401 have none.
  CHECK(trace.summary().threads == 8);
  CHECK(trace.summary().processes == 5);
  CHECK(rules_of(trace).empty());
}

TEST_CASE("a CPU that has served interrupts has a thread that counts as none") {
  FileBuilder file;
  file.program(ProcessFacts{}, 1, "main", 0);
  file.block(CpuBlock().interrupted(70, 70, "disk").interrupted(70, 70, "").block(), 0,
             2);
  file.finish(200);
  Trace trace = open_bytes(file.file());
  CHECK(collect_types(trace) ==
        std::vector<uint16_t>{ARCTRACE_TYPE_INTERRUPT, ARCTRACE_TYPE_INTERRUPT});
  const Definitions& definitions = trace.definitions();
  const reader::ThreadIndex index = definitions.find_thread(reader::kInterruptsWriter);
  const Thread* thread = definitions.thread(index);
  REQUIRE(thread != nullptr);
  CHECK(thread->interrupts_of == 0u);
  CHECK(definitions.thread_name(index, 0) == "Interrupt CPU 0");
  CHECK_FALSE(thread->is_silent);
  CHECK(trace.summary().threads == 1);
  CHECK(rules_of(trace).empty());
}

}  // namespace arctrace::testing
