// What the recorder notes of definitions: which identities are one process.
#include "src/recorder/drain/definition_notes.hpp"

#include <doctest/doctest.h>

#include "tests/support/trace_builder.hpp"

namespace arctrace::testing {
namespace {

// Adds an identity with its first thread.
void add_identity(BlockBuilder& block, uint32_t process, uint32_t pid, uint32_t origin,
                  uint64_t start_ticks) {
  ProcessFacts facts;
  facts.process = process;
  facts.pid = pid;
  facts.origin = origin;
  facts.start_ticks = start_ticks;
  block.add_full(ARCTRACE_TYPE_PROCESS, process, start_ticks, process_body(facts));
  block.add_full(ARCTRACE_TYPE_THREAD, process, start_ticks,
                 thread_body(process, process, pid, "thread"));
}

void add_end(BlockBuilder& block, uint32_t process, uint64_t ticks, uint32_t how) {
  block.add_full(ARCTRACE_TYPE_PROCESS_END, process, ticks,
                 Bytes().u32(process).u32(how).u32(0));
}

TEST_CASE("changes of program: counted once, in whatever order, however often noted") {
  BlockBuilder first = BlockBuilder::shared(0, 0, ARCTRACE_CLASS_DEFINITIONS);
  BlockBuilder second = BlockBuilder::shared(0, 0, ARCTRACE_CLASS_DEFINITIONS);
  add_identity(first, 1, 10, ARCTRACE_ORIGIN_EXEC, 5);
  add_identity(first, 3, 11, ARCTRACE_ORIGIN_EXEC, 30);
  add_identity(second, 2, 11, ARCTRACE_ORIGIN_FORK, 20);
  add_end(second, 2, 29, ARCTRACE_END_EXEC);
  add_end(second, 3, 40, ARCTRACE_END_EXIT);
  add_identity(second, 4, 11, ARCTRACE_ORIGIN_EXEC, 50);  // another process
  recorder::ProgramChanges changes;
  for (int i = 0; i < 2; ++i) {
    changes.note_untrusted(first.image().data());
    changes.note_untrusted(second.image().data());
  }
  CHECK(changes.count().processes == 1);
  CHECK(changes.count().threads == 1);
}

}  // namespace
}  // namespace arctrace::testing
