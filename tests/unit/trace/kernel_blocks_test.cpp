// The facts about overwritten records that are known before records are read.
#include "reader/trace/kernel_blocks.hpp"

#include <doctest/doctest.h>

#include "reader/trace/gaps.hpp"
#include "reader/trace/trace.hpp"
#include "tests/support/trace_builder.hpp"
#include "tests/unit/trace/collected.hpp"

namespace arctrace::testing {
namespace {

using reader::Trace;

BlockBuilder kernel_block(uint64_t handout, uint32_t cpu, uint64_t monotonic_ns) {
  BlockBuilder block = BlockBuilder::shared(handout, 0);
  block.header.writer = ARCTRACE_WRITER_KERNEL;
  return block.add_full(ARCTRACE_TYPE_SWITCH, ARCTRACE_WRITER_KERNEL | 77, monotonic_ns,
                        Bytes().u32(cpu).u32(77).u32(0).u32(78).u32(78));
}

// A trace with hand-outs 0 (the program's definitions), `first`, 5 and 6: CPU 0's block,
// CPU 1's, and a thread's.
Trace flight_recording(uint64_t first, uint32_t mode = ARCTRACE_MODE_OVERWRITE) {
  FileBuilder file;
  file.header.mode = mode;
  file.program({}, 1, "main", 0);
  file.block(kernel_block(first, 0, 300), 0, 1);
  file.block(kernel_block(5, 1, 500), 0, 5);
  file.block(BlockBuilder::exclusive(1, 4, 6, 600).stack(600, {}).enter(600, 0xA), 0, 6);
  file.finish(1000);
  return open_bytes(file.file());
}

TEST_CASE("a CPU may lack records if a block before its first one is missing") {
  Trace trace = flight_recording(1);
  const auto begins = trace.definitions().kernel_begins();
  REQUIRE(begins.size() == 1);
  CHECK(begins[0].cpu == 1);
  CHECK(begins[0].first_ns == 500);
  Trace both = flight_recording(3);
  CHECK(both.definitions().kernel_begins().size() == 2);
  Trace kept = flight_recording(1, ARCTRACE_MODE_DROP);
  CHECK(kept.definitions().kernel_begins().empty());
}

TEST_CASE("its gap lasts from the session's start to the first record that is there") {
  Trace trace = flight_recording(1);
  collect(trace);
  reader::GapFinder finder(trace.definitions(), &trace.clock(), trace.session().mode);
  const std::vector<reader::Gap> gaps = finder.finish(nullptr);
  REQUIRE(gaps.size() == 1);
  CHECK(gaps[0].reason == reader::Gap::Reason::kOverwritten);
  CHECK(gaps[0].cpu == 1u);
  CHECK(gaps[0].from_ns == 0);
  CHECK(gaps[0].to_ns == 500);
  CHECK_FALSE(gaps[0].records.has_value());
}

TEST_CASE("a thread's records are known to be overwritten up to its first block") {
  Trace trace = flight_recording(1);
  CHECK(trace.definitions().threads()[0].overwritten_until_ns == 600);
  Trace kept = flight_recording(1, ARCTRACE_MODE_DROP);
  CHECK(kept.definitions().threads()[0].overwritten_until_ns == INT64_MIN);
}

}  // namespace
}  // namespace arctrace::testing
