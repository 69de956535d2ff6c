// Whole traces, one property each: lost, torn and filtered records, and which writers
// these count for.
#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "reader/trace/trace.hpp"
#include "tests/support/trace_builder.hpp"
#include "tests/unit/trace/collected.hpp"

namespace arctrace::testing {
namespace {

using reader::Trace;
using Rules = std::vector<std::string>;

// The body of TOTALS with the fields of its owner.
Bytes totals_of(uint32_t writer, uint32_t process, uint32_t pid, uint64_t start_ticks) {
  Bytes body;
  for (uint32_t i = 0; i < 1 + ARCTRACE_LOST_CAUSES; ++i) body.u64(0);
  body.u32(process).u32(pid).u32(pid).u32(0).u64(start_ticks);
  return full_record(ARCTRACE_TYPE_TOTALS, writer, 180, body);
}

TEST_CASE("totals name writers that no definition names, and change no others") {
  FileBuilder file = small_file();
  file.records(totals_of(1, 9, 99, 1));  // this writer is known, of process 1
  file.records(totals_of(3, 2, 70, 160));
  file.records(totals_of(2, 2, 70, 150));
  file.records(totals_of(ARCTRACE_WRITER_COLLECTOR, 4, 80, 1));
  file.records(totals_of(ARCTRACE_WRITER_KERNEL | 5, 5, 81, 1));
  file.records(totals_of(6, 0, 82, 1));  // an earlier version wrote it
  Trace trace = open_bytes(file.file());
  collect(trace);
  const reader::Definitions& definitions = trace.definitions();
  REQUIRE(definitions.processes().size() == 2);
  const reader::Process& process = definitions.processes()[1];
  CHECK(process.id == 2);
  CHECK(process.pid == 70);
  CHECK(process.origin == 0);
  CHECK(process.start_ns == 150);
  REQUIRE(definitions.threads().size() == 3);
  for (const reader::Thread& thread : definitions.threads().subspan(1)) {
    CHECK(thread.process == 1);
    CHECK(thread.tid == 70);
    CHECK(thread.ended_unseen);
  }
  CHECK(definitions.threads()[0].process == 0);
}

TEST_CASE("a thread's losses are those that its totals count, if LOST records are gone") {
  for (const uint32_t mode : {ARCTRACE_MODE_OVERWRITE, ARCTRACE_MODE_DROP}) {
    CAPTURE(mode);
    FileBuilder file = small_file();
    file.header.mode = mode;
    Bytes body;
    body.u64(5);
    for (uint32_t cause = 0; cause < ARCTRACE_LOST_CAUSES; ++cause) body.u64(cause);
    file.records(full_record(ARCTRACE_TYPE_TOTALS, 1, 180, body));
    Trace trace = open_bytes(file.file());
    collect(trace);
    const uint64_t counted = mode == ARCTRACE_MODE_OVERWRITE ? 28 : 0;
    CHECK(trace.summary().lost_by_thread == std::vector<uint64_t>{counted});
  }
}

TEST_CASE("a reading that is stopped does not miss the rest") {
  for (const uint32_t mode : {ARCTRACE_MODE_OVERWRITE, ARCTRACE_MODE_DROP}) {
    CAPTURE(mode);
    FileBuilder file;
    file.header.mode = mode;
    file.program({}, 1, "main", 0);
    file.block(BlockBuilder::exclusive(1, 0, 1, 100)
                   .stack(100, {})
                   .enter(100, 0xA)
                   .enter(110, 0xB),
               0, 1);
    Bytes body = Bytes().u64(3);
    for (uint32_t cause = 0; cause < ARCTRACE_LOST_CAUSES; ++cause) body.u64(0);
    Bytes records;
    records.append(
        full_record(ARCTRACE_TYPE_TOTALS, ARCTRACE_WRITER_COLLECTOR, 180, body));
    file.records(records);
    file.finish(200);
    Trace trace = open_bytes(file.file());
    REQUIRE(trace
                .read([](const reader::Record& record) {
                  return record.type != ARCTRACE_TYPE_ENTER;
                })
                .ok());
    CHECK(rules_of(trace) == Rules{});
    CHECK(trace.summary().overwritten == 0);
    // The trace lacks the third block altogether.
    collect(trace);
    CHECK((rules_of(trace).size() == 1) == (mode == ARCTRACE_MODE_DROP));
    CHECK(trace.summary().overwritten == (mode == ARCTRACE_MODE_DROP ? 0 : 1));
  }
}

TEST_CASE("records of a writer that only totals name breach R7 as before") {
  FileBuilder file;
  file.block(BlockBuilder::exclusive(1, 0, 1, 100).stack(100, {}).enter(100, 0xA), 0, 1);
  file.records(totals_of(1, 1, 70, 90));
  file.finish(200);
  Trace trace = open_bytes(file.file());
  collect(trace);
  const Rules rules = rules_of(trace);
  CHECK(std::find(rules.begin(), rules.end(), "R7") != rules.end());
}

TEST_CASE("losses are summed by cause") {
  FileBuilder file;
  file.program({}, 1, "main", 0);
  file.block(BlockBuilder::exclusive(1, 0, 1, 100)
                 .add(ARCTRACE_TYPE_LOST, 100, lost_body(ARCTRACE_LOST_FULL, 7, 90))
                 .stack(100, {})
                 .add(ARCTRACE_TYPE_LOST, 101, lost_body(ARCTRACE_LOST_TOO_BIG, 2, 90)),
             0, 1);
  file.records(full_record(ARCTRACE_TYPE_LOST, 1, 150,
                           lost_body(ARCTRACE_LOST_FULL, 30, 0, ARCTRACE_LOST_RESIDUAL)));
  file.finish(200);
  Trace trace = open_bytes(file.file());
  const auto lost = of_type(collect(trace), ARCTRACE_TYPE_LOST);
  REQUIRE(lost.size() == 3);
  CHECK(lost[2].record.thread == 0);
  CHECK(trace.summary().lost == 39);
  CHECK(trace.summary().lost_by_cause[ARCTRACE_LOST_FULL] == 37);
  CHECK(trace.summary().lost_by_cause[ARCTRACE_LOST_TOO_BIG] == 2);
  CHECK(trace.summary().records == 0);
  CHECK(rules_of(trace) == Rules{});
}

TEST_CASE("the time of a trace begins with a loss before a thread's first record") {
  ProcessFacts process;
  process.start_ticks = 60;
  FileBuilder file;
  file.program(process, 1, "main", 0);
  file.block(BlockBuilder::exclusive(1, 0, 1, 100)
                 .add(ARCTRACE_TYPE_LOST, 100, lost_body(ARCTRACE_LOST_FULL, 7, 50))
                 .stack(100, {})
                 .enter(110, 0xA)
                 .add(ARCTRACE_TYPE_LOST, 120, lost_body(ARCTRACE_LOST_FULL, 7, 20))
                 .exit(130),
             0, 1);
  file.finish(130);
  Trace trace = open_bytes(file.file());
  collect(trace);
  CHECK(trace.summary().first_ns == 60);  // the thread did not exist before
}

TEST_CASE("hostile loss counts saturate") {
  FileBuilder file;
  file.block(BlockBuilder::exclusive(1, 0, 0, 0)
                 .add(ARCTRACE_TYPE_LOST, 0, lost_body(0, UINT64_MAX, 0))
                 .add(ARCTRACE_TYPE_LOST, 0, lost_body(0, 5, 0)));
  Trace trace = open_bytes(file.file());
  collect(trace);
  CHECK(trace.summary().lost == UINT64_MAX);
}

TEST_CASE("records in progress are skipped and counted by their writer's fate") {
  const auto make = [](uint32_t flags, bool shared) {
    FileBuilder file;
    file.program({}, 1, "main", 0);
    BlockBuilder block = shared ? BlockBuilder::shared(1, 100)
                                : BlockBuilder::exclusive(1, 0, 1, 100).stack(100, {});
    if (shared) {
      block.add_full(ARCTRACE_TYPE_ENTER, 1, 100, key_body(1), true);
      block.add_full(ARCTRACE_TYPE_STACK, 1, 100, stack_body({}), true);
      block.add_full(ARCTRACE_TYPE_EXIT, 1, 105);
    } else {
      block.add(ARCTRACE_TYPE_ENTER, 100, key_body(1), true);
      block.add(ARCTRACE_TYPE_STACK, 100, stack_body({}), true);
      block.exit(105);
    }
    file.block(block, static_cast<uint16_t>(flags), 1);
    return file.finish(200);
  };
  for (const bool shared : {false, true}) {
    CAPTURE(shared);
    for (const uint32_t flags : {0u, ARCTRACE_CHUNK_OWNER_DIED}) {
      Trace torn = open_bytes(make(flags, shared).file());
      CHECK(of_type(collect(torn), ARCTRACE_TYPE_ENTER).empty());
      CHECK(torn.summary().torn == 1);
      CHECK(torn.summary().unfinished == 0);
      CHECK(torn.summary().records == 1);
      CHECK(rules_of(torn) == Rules{});
    }
    Trace live = open_bytes(make(ARCTRACE_CHUNK_LIVE_COPY, shared).file());
    collect(live);
    CHECK(live.summary().torn == 0);
    CHECK(live.summary().unfinished == 1);
    FileBuilder dead = make(ARCTRACE_CHUNK_LIVE_COPY, shared);
    dead.records(full_record(ARCTRACE_TYPE_WRITER_END, 0, 150,
                             pair_body(1, ARCTRACE_WRITER_DIED)));
    Trace known = open_bytes(dead.file());
    collect(known);
    CHECK(known.summary().torn == 1);
    CHECK(known.summary().unfinished == 0);
  }
}

TEST_CASE("serials: gaps and doubles") {
  const auto make = [](uint32_t mode, bool finished) {
    FileBuilder file;
    file.header.mode = mode;
    file.program({}, 1, "main", 0);
    for (const uint64_t serial : {2u, 3u, 5u}) {
      file.block(BlockBuilder::exclusive(1, serial, serial, serial * 100)
                     .stack(serial * 100, {})
                     .enter(serial * 100, serial),
                 0, static_cast<uint32_t>(serial));
    }
    if (finished) file.finish(1000);
    return open_bytes(file.file());
  };
  Trace trace = make(ARCTRACE_MODE_DROP, true);
  const auto all = collect(trace);
  const auto stacks = of_type(all, ARCTRACE_TYPE_STACK);
  REQUIRE(stacks.size() == 3);
  CHECK(stacks[0].record.after_gap);
  CHECK_FALSE(stacks[1].record.after_gap);
  CHECK(stacks[2].record.after_gap);
  for (const auto& enter : of_type(all, ARCTRACE_TYPE_ENTER)) {
    CHECK_FALSE(enter.record.after_gap);
  }
  CHECK(rules_of(trace) == Rules{"B5", "B5"});
  Trace overwritten = make(ARCTRACE_MODE_OVERWRITE, true);
  CHECK(rules_of(overwritten) == Rules{});
  Trace unfinished = make(ARCTRACE_MODE_DROP, false);
  CHECK(rules_of(unfinished) == Rules{"F6"});
}

TEST_CASE("exits of a handler whose entries were overwritten say so") {
  const auto make = [](uint32_t mode) {
    FileBuilder file;
    file.header.mode = mode;
    file.program({}, 1, "main", 0);
    file.block(
        BlockBuilder::exclusive(1, 0, 4, 100).stack(100, {}).enter(101, 1).exit(200), 0,
        4);
    // A handler interrupts the thread, whose first records were in block 1.
    BlockBuilder oldest = BlockBuilder::shared(2, 0);
    oldest.add_full(ARCTRACE_TYPE_ENTER, 1, 110, Bytes().u64(2))
        .add_full(ARCTRACE_TYPE_EXIT, 1, 111, {})
        .add_full(ARCTRACE_TYPE_EXIT, 1, 112, {})
        .add_full(ARCTRACE_TYPE_EXIT_NAMED, 1, 113, Bytes().u64(3));
    file.block(oldest, 0, 2);
    // The next block begins within a handler, too, whose entry is there.
    file.block(BlockBuilder::shared(3, 0)
                   .add_full(ARCTRACE_TYPE_EXIT, 1, 150, {})
                   .add_full(ARCTRACE_TYPE_STACK, 1, 151, stack_body({}))
                   .add_full(ARCTRACE_TYPE_EXIT, 1, 152, {}),
               0, 3);
    file.finish(1000);
    return open_bytes(file.file());
  };
  const auto exits_after_gaps = [&](uint32_t mode) {
    Trace trace = make(mode);
    std::vector<uint64_t> ticks;
    for (const CollectedRecord& collected : collect(trace)) {
      const reader::Record& record = collected.record;
      const bool is_exit =
          record.type == ARCTRACE_TYPE_EXIT || record.type == ARCTRACE_TYPE_EXIT_NAMED;
      if (is_exit && record.after_gap) ticks.push_back(record.ticks);
    }
    return ticks;
  };
  CHECK(exits_after_gaps(ARCTRACE_MODE_OVERWRITE) == std::vector<uint64_t>{112, 113});
  CHECK(exits_after_gaps(ARCTRACE_MODE_DROP).empty());
  // The oldest remaining block of several writers begins at 110.
  const auto chain_begin = [&](uint32_t mode) {
    return make(mode).definitions().chain_begin_ns();
  };
  CHECK(chain_begin(ARCTRACE_MODE_OVERWRITE) == 110);
  CHECK(chain_begin(ARCTRACE_MODE_DROP) == INT64_MIN);
}

TEST_CASE("records in a block of many writers are counted as the chain's") {
  FileBuilder file;
  BlockBuilder definitions = BlockBuilder::shared(0, 0, ARCTRACE_CLASS_DEFINITIONS);
  definitions.add_full(ARCTRACE_TYPE_PROCESS, 1, 0, process_body({}));
  definitions.add_full(ARCTRACE_TYPE_THREAD, 1, 2, thread_body(1, 1, 100, "a"));
  BlockBuilder chain = BlockBuilder::shared(1, 0, ARCTRACE_CLASS_DATA);
  chain.add_full(ARCTRACE_TYPE_INSTANT, 1, 10, Bytes().u32(1));
  chain.add_full(ARCTRACE_TYPE_INSTANT, 1, 11, Bytes().u32(1));
  file.block(definitions).block(chain).finish(20);
  Trace trace = open_bytes(file.file());
  collect(trace);
  CHECK(trace.summary().own_blocks.threads == 0);
  CHECK(trace.summary().shared_chain.records == 2);
  CHECK(trace.summary().shared_chain.threads == 1);
}

}  // namespace
}  // namespace arctrace::testing
