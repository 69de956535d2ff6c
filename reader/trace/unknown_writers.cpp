#include "reader/trace/unknown_writers.hpp"

#include <absl/container/flat_hash_set.h>
#include <absl/strings/str_cat.h>

#include <utility>

namespace arctrace::reader {
namespace {

void add_unknown_process(const BlockRef& block, const Session& session,
                         Definitions& definitions, FindingLog& findings) {
  if (block.process == 0 || definitions.find_process(block.process) != kNoIndex) return;
  if (!session.may_lack_definitions) {
    findings.add(Rule::kDefinitionProcess, absl::StrCat("process ", block.process),
                 block.chunk);
  }
  Process process;
  process.id = block.process;
  process.pid = block.pid;
  definitions.add_process(std::move(process));
}

}  // namespace

void add_unknown_writers(std::span<const std::vector<BlockRef>> exclusive,
                         const SharedWriters& shared, const Session& session,
                         const ClockMap& clock, Definitions& definitions,
                         FindingLog& findings) {
  const auto report = [&](uint32_t writer, uint64_t chunk) {
    if (session.may_lack_definitions) return;
    findings.add(Rule::kRecordWriter, absl::StrCat("writer ", writer), chunk);
  };
  // TOTALS alone name it, where its THREAD should.
  const auto is_undefined = [&](uint32_t writer) {
    const Thread* thread = definitions.thread(definitions.find_thread(writer));
    return thread != nullptr && !thread->of_kernel() && thread->ended_unseen &&
           thread->names.empty();
  };
  for (const std::vector<BlockRef>& blocks : exclusive) {
    const BlockRef& block = blocks.front();
    if (definitions.find_thread(block.writer) != kNoIndex) {
      if (is_undefined(block.writer)) report(block.writer, block.chunk);
      continue;
    }
    report(block.writer, block.chunk);
    add_unknown_process(block, session, definitions, findings);
    Thread thread;
    thread.writer = block.writer;
    thread.process = definitions.find_process(block.process);
    thread.tid = block.tid;
    thread.start_ns = clock.to_ns(block.base_ticks);
    definitions.add_thread(std::move(thread));
  }
  // The kernel names threads of processes that are not recorded; the recorder's is one.
  absl::flat_hash_set<uint32_t> foreign = {session.creator_pid};
  for (const auto& [writer, facts] : shared.all()) {
    if (facts.is_foreign) foreign.insert(facts.tgid);
  }
  // Sorted, so that threads are numbered alike each time.
  for (const uint32_t writer : shared.sorted()) {
    if (definitions.find_thread(writer) != kNoIndex) {
      if (is_undefined(writer)) report(writer, 0);
      continue;
    }
    Thread thread;
    thread.writer = writer;
    if (thread.of_kernel()) {
      thread.tid = writer & ~ARCTRACE_WRITER_KERNEL;
      const SharedFacts& facts = shared.all().at(writer);
      thread.tgid = facts.tgid;
      thread.is_foreign = facts.is_foreign || foreign.contains(facts.tgid);
      if (facts.name.has_value()) thread.names.push_back({INT64_MIN, *facts.name});
    } else {
      report(writer, 0);
    }
    definitions.add_thread(std::move(thread));
  }
}

}  // namespace arctrace::reader
