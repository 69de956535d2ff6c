// Whole traces, one property each.
#include "reader/trace/trace.hpp"

#include <doctest/doctest.h>

#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "src/base/checksum.hpp"
#include "tests/support/trace_builder.hpp"
#include "tests/unit/trace/collected.hpp"

namespace arctrace::testing {
namespace {

using reader::kNoIndex;
using reader::Trace;
using Rules = std::vector<std::string>;

// One program with one thread, two exclusive blocks.
FileBuilder small_file() {
  FileBuilder file;
  file.program({}, 1, "main", 0);
  file.block(BlockBuilder::exclusive(1, 0, 1, 100)
                 .stack(100, {})
                 .enter(100, 0xA)
                 .enter(110, 0xB),
             0, 1);
  file.block(BlockBuilder::exclusive(1, 1, 2, 120)
                 .stack(120, {0xA, 0xB})
                 .exit(120)
                 .add(ARCTRACE_TYPE_TEXT, 125, text_body("hello"))
                 .exit(130),
             0, 2);
  file.finish(200);
  return file;
}

TEST_CASE("a small file: records, sums, session, no findings") {
  Trace trace = open_bytes(small_file().file());
  const auto all = collect(trace);
  const std::vector<uint16_t> types = {ARCTRACE_TYPE_PROCESS, ARCTRACE_TYPE_THREAD,
                                       ARCTRACE_TYPE_STACK,   ARCTRACE_TYPE_ENTER,
                                       ARCTRACE_TYPE_ENTER,   ARCTRACE_TYPE_STACK,
                                       ARCTRACE_TYPE_EXIT,    ARCTRACE_TYPE_TEXT,
                                       ARCTRACE_TYPE_EXIT,    ARCTRACE_TYPE_SESSION};
  REQUIRE(all.size() == types.size());
  for (size_t i = 0; i < types.size(); ++i) CHECK(all[i].record.type == types[i]);
  CHECK(all[4].record.time_ns == 110);
  CHECK(all[4].record.compact);
  CHECK(all[4].record.chunk == 1);
  CHECK(all[4].record.offset == 128 + 16 + 16);
  CHECK(all[4].record.thread == 0);
  CHECK(all[9].record.thread == kNoIndex);
  CHECK_FALSE(all[9].record.compact);

  const reader::Summary& summary = trace.summary();
  CHECK(summary.records == 5);
  CHECK(summary.lost == 0);
  CHECK(summary.torn == 0);
  CHECK(summary.processes == 1);
  CHECK(summary.threads == 1);
  CHECK(summary.first_ns == 100);
  // Without TOTALS of the session the recording goes on in another file: all that is
  // known of the thread's end is its last record.
  CHECK(summary.last_ns == 130);
  CHECK(summary.duration_ns == 30);
  CHECK(summary.records_by_type.at(ARCTRACE_TYPE_ENTER) == 2);
  CHECK(summary.records_by_thread == std::vector<uint64_t>{5});
  CHECK(summary.own_records_by_thread == std::vector<uint64_t>{5});
  CHECK(summary.own_blocks.records == 5);
  CHECK(summary.own_blocks.threads == 1);
  CHECK(summary.shared_chain.records == 0);
  CHECK(summary.shared_chain.threads == 0);
  CHECK(summary.blocks == 4);
  CHECK(rules_of(trace) == Rules{});
  CHECK(trace.session().finished);
  CHECK_FALSE(trace.session().raw);
  CHECK(trace.buffer() == nullptr);
}

TEST_CASE("reading again gives the same again") {
  FileBuilder file = small_file();
  file.chunks.data()[32 + 96] ^= std::byte{3};  // the hand-out, for a finding
  Trace trace = open_bytes(file.file());
  const size_t records = collect(trace).size();
  const uint64_t findings = trace.finding_count();
  CHECK(findings > 0);
  CHECK(collect(trace).size() == records);
  CHECK(trace.finding_count() == findings);
  CHECK(trace.summary().findings == findings);
}

TEST_CASE("a sink that wants no more gets no more") {
  Trace trace = open_bytes(small_file().file());
  int got = 0;
  CHECK(trace.read([&](const reader::Record&) { return ++got < 4; }).ok());
  CHECK(got == 4);
}

TEST_CASE("what a changed title left of the arguments is no argument") {
  FileBuilder file;
  BlockBuilder block = BlockBuilder::shared(0, 50, ARCTRACE_CLASS_DEFINITIONS);
  ProcessFacts facts;
  facts.command_line = std::string("one\0\0\0", 6);
  block.add_full(ARCTRACE_TYPE_PROCESS, 1, 50, process_body(facts));
  block.add_full(ARCTRACE_TYPE_PHASE, 1, 60, pair_body(1, ARCTRACE_LIFE_MAIN));
  facts.process = 2;
  facts.pid = 200;  // has joined as it ran
  block.add_full(ARCTRACE_TYPE_PROCESS, 1, 70, process_body(facts));
  facts.process = 3;
  facts.pid = 300;
  facts.parent = 1;
  facts.origin = ARCTRACE_ORIGIN_FORK;
  block.add_full(ARCTRACE_TYPE_PROCESS, 1, 80, process_body(facts));
  file.block(block);
  file.finish(1000);
  Trace trace = open_bytes(file.file());
  collect(trace);
  const auto processes = trace.definitions().processes();
  REQUIRE(processes.size() == 3);
  CHECK(processes[0].arguments == std::vector<std::string>{"one", "", ""});
  CHECK(processes[1].arguments == std::vector<std::string>{"one"});
  CHECK(processes[2].arguments == std::vector<std::string>{"one"});
}

TEST_CASE("what definitions define") {
  FileBuilder file;
  ProcessFacts facts;
  facts.parent = 7;
  facts.pid = 1234;
  facts.uid = 55;
  facts.start_ticks = 50;
  facts.executable = "/bin/odd";  // sizes that are no multiple of 4
  facts.command_line = std::string("odd\0-x\0", 7);
  BlockBuilder block = BlockBuilder::shared(0, 50, ARCTRACE_CLASS_DEFINITIONS);
  // Later ones first: what is used may be defined after it.
  block.add_full(ARCTRACE_TYPE_PROCESS_END, 1, 900,
                 process_end_body(1, ARCTRACE_END_EXIT_DIRECT, 3));
  block.add_full(ARCTRACE_TYPE_THREAD, 1, 80, thread_body(1, 1, 1234, "renamed", 50));
  block.add_full(ARCTRACE_TYPE_THREAD, 1, 60, thread_body(1, 1, 1234, "main", 50));
  block.add_full(ARCTRACE_TYPE_STRING, 1, 60, string_body(1, 5, "five"));
  block.add_full(
      ARCTRACE_TYPE_MODULE, 1, 60,
      module_body(1, 0x1000, 0x2000, 0x800, "/bin/odd", "12345", ARCTRACE_MODULE_MAIN));
  block.add_full(ARCTRACE_TYPE_MODULE_GONE, 1, 90, module_gone_body(1, 0x1000));
  block.add_full(ARCTRACE_TYPE_EVENT_LAYOUT, 1, 60,
                 layout_body(1, 6, "tick", {{ARCTRACE_FIELD_U8, "a"}}, 3));
  block.add_full(ARCTRACE_TYPE_PROCESS, 1, 50, process_body(facts));
  file.block(block);
  Bytes records;
  records.append(full_record(ARCTRACE_TYPE_SYSTEM, 0, 10,
                             system_body("host", "6.1.0", std::string("a\0b c\0", 6))));
  records.append(full_record(ARCTRACE_TYPE_CHILD_STATUS, 0, 950, pair_body(1234, 768)));
  records.append(
      full_record(ARCTRACE_TYPE_WRITER_END, 0, 940, pair_body(1, ARCTRACE_WRITER_DIED)));
  file.records(records).finish(1000);
  Trace trace = open_bytes(file.file());
  collect(trace);
  CHECK(rules_of(trace) == Rules{});

  const reader::Definitions& definitions = trace.definitions();
  REQUIRE(definitions.processes().size() == 1);
  const reader::Process& process = definitions.processes()[0];
  CHECK(process.parent_id == 7);
  CHECK(process.pid == 1234);
  CHECK(process.uid == 55);
  CHECK(process.start_ns == 50);
  CHECK(process.end_ns == 900);
  CHECK(process.end_how == ARCTRACE_END_EXIT_DIRECT);
  CHECK(process.end_status == 3);
  CHECK(process.executable == "/bin/odd");
  CHECK(process.arguments == std::vector<std::string>{"odd", "-x"});
  REQUIRE(process.modules.size() == 1);
  CHECK(process.modules[0].bias == 0x800);
  CHECK(process.modules[0].path == "/bin/odd");
  CHECK(process.modules[0].build_id.size() == 5);
  CHECK(process.modules[0].flags == ARCTRACE_MODULE_MAIN);
  CHECK(process.modules[0].loaded_ns == 60);
  CHECK(process.modules[0].unloaded_ns == 90);
  REQUIRE(definitions.threads().size() == 1);
  CHECK(definitions.threads()[0].tid == 1234);
  CHECK(definitions.threads()[0].end_ns == 940);
  CHECK(definitions.thread_name(0, 79) == "main");
  CHECK(definitions.thread_name(0, 80) == "renamed");
  CHECK(definitions.name(0, 5) == "five");
  REQUIRE(definitions.layout(0, 6) != nullptr);
  CHECK(definitions.layout(0, 6)->level == 3);
  CHECK(definitions.layout(0, 6)->fields[0].name == "a");
  CHECK(trace.session().host == "host");
  CHECK(trace.session().kernel == "6.1.0");
  CHECK(trace.session().recorder_command == std::vector<std::string>{"a", "b c"});
  CHECK(trace.session().child_wait_status == 768);
}

TEST_CASE("the last record of a process' end counts") {
  const auto end_of = [](const std::vector<std::pair<uint64_t, uint32_t>>& ends) {
    FileBuilder file;
    BlockBuilder block = BlockBuilder::shared(0, 50, ARCTRACE_CLASS_DEFINITIONS);
    block.add_full(ARCTRACE_TYPE_PROCESS, 1, 50, process_body({}));
    for (const auto& [ticks, how] : ends) {
      block.add_full(ARCTRACE_TYPE_PROCESS_END, 1, ticks, process_end_body(1, how, 0));
    }
    file.block(block).finish(1000);
    Trace trace = open_bytes(file.file());
    collect(trace);
    const reader::Process& process = trace.definitions().processes()[0];
    return std::pair(process.end_how, process.end_ns);
  };
  using End = std::pair<uint32_t, int64_t>;
  CHECK(end_of({{700, ARCTRACE_END_EXEC}}) == End(ARCTRACE_END_EXEC, 700));
  CHECK(end_of({{700, ARCTRACE_END_EXEC}, {710, ARCTRACE_END_NONE}}) ==
        End(ARCTRACE_END_NONE, INT64_MAX));
  CHECK(end_of({{710, ARCTRACE_END_NONE}, {700, ARCTRACE_END_EXEC}}) ==
        End(ARCTRACE_END_NONE, INT64_MAX));
  CHECK(end_of({{700, ARCTRACE_END_EXEC},
                {710, ARCTRACE_END_NONE},
                {900, ARCTRACE_END_EXIT}}) == End(ARCTRACE_END_EXIT, 900));
}

TEST_CASE("the clock follows the syncs of the file") {
  FileBuilder file;
  file.header.clock = ARCTRACE_CLOCK_TSC;
  file.header.start_ticks = 1000;
  file.header.start_monotonic_ns = 5000;
  file.header.ticks_per_second = 1;
  file.block(
      BlockBuilder::exclusive(1, 0, 0, 1000).stack(1000, {}).enter(2000, 1).exit(5000));
  file.records(full_record(ARCTRACE_TYPE_CLOCK_SYNC, 0, 3000,
                           clock_sync_body(3000, 5000 + 4000, 0)));
  file.records(full_record(ARCTRACE_TYPE_CLOCK_SYNC, 0, 4000,
                           clock_sync_body(4000, 5000 + 4500, 0)));
  Trace trace = open_bytes(file.file());
  const auto all = collect(trace);
  CHECK(of_type(all, ARCTRACE_TYPE_STACK)[0].record.time_ns == 0);
  CHECK(of_type(all, ARCTRACE_TYPE_ENTER)[0].record.time_ns == 2000);
  CHECK(of_type(all, ARCTRACE_TYPE_EXIT)[0].record.time_ns == 5000);
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

TEST_CASE("a writer without THREAD is known by its block") {
  FileBuilder file;
  file.block(
      BlockBuilder::exclusive(9, 0, 0, 100, 4, 44, 45).stack(100, {}).enter(101, 1));
  file.block(BlockBuilder::shared(1, 100).add_full(ARCTRACE_TYPE_INSTANT, 10, 102,
                                                   Bytes().u32(1)),
             0, 1);
  file.block(BlockBuilder::shared(2, 100).add_full(80, ARCTRACE_WRITER_KERNEL | 77, 103,
                                                   Bytes().u32(0).u32(66)),
             0, 2);
  file.finish(200);
  Trace trace = open_bytes(file.file());
  const auto all = collect(trace);
  CHECK(all[1].writer == 9);
  CHECK(all[2].writer == 10);
  CHECK(all[3].writer == (ARCTRACE_WRITER_KERNEL | 77));
  CHECK(trace.definitions().thread(all[1].record.thread)->tid == 45);
  CHECK(trace.definitions().process_of(all[1].record.thread)->pid == 44);
  CHECK(trace.definitions().process_of(all[2].record.thread) == nullptr);
  CHECK(trace.definitions().thread(all[3].record.thread)->tid == 77);
  CHECK(trace.definitions().pid_of(all[1].record.thread) == 44);
  CHECK(!trace.definitions().has_pid(all[2].record.thread));
  CHECK(trace.definitions().pid_of(all[3].record.thread) == 66);
  CHECK(trace.summary().threads == 2);
  CHECK(rules_of(trace) == Rules{"R7", "D1", "R7"});
}

TEST_CASE("a block that breaks off: what stands before it counts, and what comes later") {
  FileBuilder file;
  file.program({}, 1, "main", 0);
  BlockBuilder broken =
      BlockBuilder::exclusive(1, 0, 1, 100).stack(100, {}).enter(101, 1);
  broken.content.u32(word0(ARCTRACE_TYPE_ENTER, 4000));
  file.block(broken, 0, 1);
  file.block(BlockBuilder::exclusive(1, 1, 2, 200).stack(200, {1}).exit(201), 0, 2);
  file.finish(300);
  Trace trace = open_bytes(file.file());
  const auto all = collect(trace);
  CHECK(of_type(all, ARCTRACE_TYPE_ENTER).size() == 1);
  CHECK(of_type(all, ARCTRACE_TYPE_EXIT).size() == 1);
  const auto stacks = of_type(all, ARCTRACE_TYPE_STACK);
  REQUIRE(stacks.size() == 2);
  CHECK_FALSE(stacks[0].record.after_gap);
  CHECK(stacks[1].record.after_gap);
  REQUIRE(rules_of(trace) == Rules{"R1"});
  CHECK(trace.findings()[0].chunk == 1);
  CHECK(trace.findings()[0].offset == 128 + 16 + 16);
}

TEST_CASE("a record whose content is wrong is skipped, and the walk goes on") {
  FileBuilder file;
  file.program({}, 1, "main", 0);
  file.block(BlockBuilder::exclusive(1, 0, 1, 100)
                 .stack(100, {})
                 .add(ARCTRACE_TYPE_TEXT, 101, Bytes().u32(1000))
                 .add(ARCTRACE_TYPE_ENTER, 102)
                 .exit(103),
             0, 1);
  file.finish(300);
  Trace trace = open_bytes(file.file());
  const auto all = collect(trace);
  CHECK(of_type(all, ARCTRACE_TYPE_TEXT).empty());
  CHECK(of_type(all, ARCTRACE_TYPE_ENTER).empty());
  CHECK(of_type(all, ARCTRACE_TYPE_EXIT).size() == 1);
  CHECK(trace.summary().invalid == 2);
  CHECK(rules_of(trace) == Rules{"R3", "R3"});
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

TEST_CASE("a block that stands twice counts once, the longer one") {
  const BlockBuilder head =
      BlockBuilder::exclusive(1, 0, 1, 100).stack(100, {}).enter(101, 1);
  const BlockBuilder whole = BlockBuilder(head).exit(102);
  for (const bool longer_first : {false, true}) {
    FileBuilder file;
    file.program({}, 1, "main", 0);
    file.block(longer_first ? whole : head, 0, 1)
        .block(longer_first ? head : whole, 0, 1);
    file.finish(200);
    Trace trace = open_bytes(file.file());
    const auto all = collect(trace);
    CHECK(of_type(all, ARCTRACE_TYPE_ENTER).size() == 1);
    CHECK(of_type(all, ARCTRACE_TYPE_EXIT).size() == 1);
    CHECK(rules_of(trace) == Rules{"B4"});
  }
}

TEST_CASE(
    "of the live copies of definitions the longest counts, wherever the file ends") {
  BlockBuilder defined = BlockBuilder::shared(0, 0, ARCTRACE_CLASS_DEFINITIONS);
  defined.add_full(ARCTRACE_TYPE_PROCESS, 1, 0, process_body({}));
  FileBuilder file;
  file.block(defined, ARCTRACE_CHUNK_LIVE_COPY);
  defined.add_full(ARCTRACE_TYPE_STRING, 1, 0, string_body(1, 1, "name"));
  file.block(defined, ARCTRACE_CHUNK_LIVE_COPY);
  const size_t first_copies = file.file().size();
  file.block(defined, 0);
  const std::vector<std::byte> whole = file.file();
  for (size_t size = first_copies; size <= whole.size(); size += 4) {
    CAPTURE(size);
    Trace trace =
        open_bytes({whole.begin(), whole.begin() + static_cast<ptrdiff_t>(size)});
    collect(trace);
    REQUIRE(trace.definitions().processes().size() == 1);
    CHECK(trace.definitions().name(0, 1) == "name");
  }
}

TEST_CASE("records in the wrong block are shown, with a finding") {
  FileBuilder file;
  file.program({}, 1, "main", 0);
  file.block(BlockBuilder::exclusive(1, 0, 1, 100)
                 .stack(100, {})
                 .add(ARCTRACE_TYPE_STRING, 101, string_body(1, 1, "x")),
             0, 1);
  file.block(BlockBuilder::shared(2, 100, ARCTRACE_CLASS_DEFINITIONS)
                 .add_full(ARCTRACE_TYPE_EXIT, 1, 102),
             0, 2);
  file.records(full_record(ARCTRACE_TYPE_ENTER, 0, 103, key_body(1)));
  file.finish(200);
  Trace trace = open_bytes(file.file());
  const auto all = collect(trace);
  CHECK(of_type(all, ARCTRACE_TYPE_STRING).size() == 1);
  CHECK(of_type(all, ARCTRACE_TYPE_EXIT).size() == 1);
  CHECK(of_type(all, ARCTRACE_TYPE_ENTER).size() == 1);
  CHECK(rules_of(trace) == Rules{"R6", "R6", "R6"});
}

TEST_CASE("chunks that break rules") {
  const auto rules = [](const FileBuilder& file) {
    Trace trace = open_bytes(file.file());
    collect(trace);
    return rules_of(trace);
  };
  FileBuilder after_end = small_file();
  after_end.block(BlockBuilder::exclusive(1, 2, 3, 300).stack(300, {}), 0, 3);
  CHECK(rules(after_end) == Rules{"F7"});

  FileBuilder magic = small_file();
  magic.chunks.append(Bytes().fill(32, 0));
  CHECK(rules(magic) == Rules{"F1"});

  // A newer version's kinds are stepped over, wherever they stand.
  constexpr uint16_t kUnknownKind = 999;
  FileBuilder unknown = small_file();
  unknown.chunk(kUnknownKind, Bytes().fill(44, 0xFF));
  CHECK(rules(unknown).empty());
  FileBuilder unknown_first;
  unknown_first.chunk(kUnknownKind, Bytes().fill(32, 0)).program({}, 1, "main", 0);
  unknown_first.finish(1);
  CHECK(rules(unknown_first).empty());

  FileBuilder size;
  size.chunk(ARCTRACE_CHUNK_BLOCK, Bytes().fill(64, 0)).finish(1);
  CHECK(rules(size) == Rules{"F3"});
  FileBuilder large;
  large.chunk(ARCTRACE_CHUNK_BLOCK, Bytes().fill(4100, 0)).finish(1);
  CHECK(rules(large) == Rules{"F3"});
  FileBuilder records;
  records.chunk(ARCTRACE_CHUNK_RECORDS, Bytes().fill((16u << 20) + 4, 0xFF)).finish(1);
  CHECK(rules(records) == Rules{"F4"});

  FileBuilder sequence = small_file();
  sequence.chunks.data()[16] = std::byte{9};
  CHECK(rules(sequence) == Rules{"F2", "F2"});

  FileBuilder index;
  index.program({}, 1, "main", 8 + 3).finish(1);  // its index is that of block 0
  CHECK(rules(index) == Rules{"B3"});

  FileBuilder header;
  BlockBuilder form = BlockBuilder::exclusive(1, 0, 0, 0);
  form.header.form = 3;
  BlockBuilder compact_definitions = BlockBuilder::exclusive(1, 0, 0, 0);
  compact_definitions.header.block_class = ARCTRACE_CLASS_DEFINITIONS;
  BlockBuilder nobody = BlockBuilder::exclusive(0, 0, 0, 0);
  header.block(form).block(compact_definitions).block(nobody).finish(1);
  CHECK(rules(header) == Rules{"B2", "B2", "B2"});
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

TEST_CASE("a definition that contradicts another") {
  FileBuilder file;
  BlockBuilder block = BlockBuilder::shared(0, 0, ARCTRACE_CLASS_DEFINITIONS);
  ProcessFacts other;
  other.pid = 101;
  block.add_full(ARCTRACE_TYPE_PROCESS, 1, 0, process_body({}));
  block.add_full(ARCTRACE_TYPE_PROCESS, 1, 1, process_body(other));
  block.add_full(ARCTRACE_TYPE_THREAD, 1, 2, thread_body(1, 1, 100, "a"));
  block.add_full(ARCTRACE_TYPE_THREAD, 1, 3, thread_body(1, 1, 101, "a"));
  block.add_full(ARCTRACE_TYPE_STRING, 1, 4, string_body(1, 1, "a"));
  block.add_full(ARCTRACE_TYPE_STRING, 1, 5, string_body(1, 1, "b"));
  block.add_full(ARCTRACE_TYPE_EVENT_LAYOUT, 1, 6, layout_body(1, 1, "a", {}));
  block.add_full(ARCTRACE_TYPE_EVENT_LAYOUT, 1, 7, layout_body(1, 1, "b", {}));
  block.add_full(ARCTRACE_TYPE_MODULE, 1, 8, module_body(1, 9, 9, 0, "empty"));
  block.add_full(ARCTRACE_TYPE_MODULE_GONE, 1, 9, module_gone_body(1, 9));
  block.add_full(ARCTRACE_TYPE_STRING, 1, 10, string_body(2, 1, "whose?"));
  file.block(block).finish(20);
  Trace trace = open_bytes(file.file());
  CHECK(rules_of(trace) == Rules{"D2", "D2", "D2", "D2", "D3", "D3", "D1"});
}

// A copy with checksums.
std::vector<std::byte> with_checksums(std::vector<std::byte> file) {
  arctrace_session_header header{};
  std::memcpy(&header, file.data(), sizeof header);
  header.features_required |= ARCTRACE_FEATURE_CHECKSUMS;
  std::memcpy(file.data(), &header, sizeof header);
  arctrace_chunk_header chunk{};
  for (size_t at = ARCTRACE_HEADER_SIZE; at < file.size();
       at += sizeof chunk + chunk.size) {
    std::memcpy(&chunk, &file[at], sizeof chunk);
    chunk.checksum = 0;
    std::memcpy(&file[at], &chunk, sizeof chunk);
    Checksum checksum;
    checksum.add(std::span(file).subspan(at, sizeof chunk + chunk.size));
    chunk.checksum = checksum.value();
    std::memcpy(&file[at], &chunk, sizeof chunk);
  }
  return file;
}

TEST_CASE("checksums show any bit that has changed, where they are asked for") {
  const std::vector<std::byte> old = small_file().file();  // as version 1.4 made it
  const std::vector<std::byte> file = with_checksums(old);
  for (const bool verifies : {false, true}) {
    for (const auto& good : {old, file}) {
      CHECK(rules_of(open_bytes(good, {.verifies_checksums = verifies})).empty());
    }
  }
  size_t unseen = 0;  // without them
  for (size_t at = ARCTRACE_HEADER_SIZE; at < file.size(); ++at) {
    CAPTURE(at);
    std::vector<std::byte> damaged = file;
    damaged[at] ^= std::byte{1} << (at % 8);
    CHECK(!rules_of(open_bytes(damaged, {.verifies_checksums = true})).empty());
    if (rules_of(open_bytes(damaged)).empty()) ++unseen;
  }
  CHECK(unseen > 100);
}

TEST_CASE("findings are bounded, and counted") {
  FileBuilder file;
  BlockBuilder block = BlockBuilder::exclusive(1, 0, 0, 0);
  for (int i = 0; i < 100; ++i) block.add(ARCTRACE_TYPE_ENTER, 0);
  file.block(block);
  auto trace = Trace::open(reader::memory_input("t", file.file()), {10});
  REQUIRE(trace.ok());
  REQUIRE(trace->read([](const reader::Record&) { return true; }).ok());
  CHECK(trace->findings().size() == 10);
  CHECK(trace->finding_count() == 103);  // and unknown writer, its process, no end
}

}  // namespace
}  // namespace arctrace::testing
