// Whole traces, one property each: facts in definitions, and contradictions.
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "reader/trace/trace.hpp"
#include "tests/support/trace_builder.hpp"
#include "tests/unit/trace/collected.hpp"

namespace arctrace::testing {
namespace {

using reader::Trace;
using Rules = std::vector<std::string>;

TEST_CASE("what a changed title left of the arguments is no argument") {
  FileBuilder file;
  BlockBuilder block = BlockBuilder::shared(0, 50, ARCTRACE_CLASS_DEFINITIONS);
  ProcessFacts facts;
  facts.command_line = std::string("one\0\0\0", 6);
  block.add_full(ARCTRACE_TYPE_PROCESS, 1, 50, process_body(facts));
  block.add_full(ARCTRACE_TYPE_PHASE, 1, 60, pair_body(1, ARCTRACE_LIFE_MAIN));
  facts.process = 2;
  facts.pid = 200;  // joined while it ran
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

TEST_CASE("patched functions that were switched off, each since the first word of it") {
  FileBuilder file;
  BlockBuilder block = BlockBuilder::shared(0, 50, ARCTRACE_CLASS_DEFINITIONS);
  const auto patches = [](uint32_t verdict, std::vector<uint64_t> listed) {
    const auto count = static_cast<uint32_t>(listed.size());
    Bytes body = Bytes().u32(1).u32(verdict).u32(count).u32(count).u32(0);
    for (const uint64_t address : listed) body.u64(address);
    return body;
  };
  block.add_full(ARCTRACE_TYPE_PROCESS, 1, 50, process_body({}));
  block.add_full(ARCTRACE_TYPE_PATCHES, 1, 60, patches(ARCTRACE_PATCH_DONE, {0x10}));
  block.add_full(ARCTRACE_TYPE_PATCHES, 1, 300,
                 patches(ARCTRACE_PATCH_THROTTLED, {0x10, 0x20}));
  block.add_full(ARCTRACE_TYPE_PATCHES, 1, 200,
                 patches(ARCTRACE_PATCH_THROTTLED, {0x20}));
  block.add_full(ARCTRACE_TYPE_PATCHES, 1, 400, patches(ARCTRACE_PATCH_THREADS, {}));
  // A refusal that lists an address is a library's.
  block.add_full(ARCTRACE_TYPE_PATCHES, 1, 500, patches(ARCTRACE_PATCH_CONFINED, {0x30}));
  file.block(block);
  file.finish(1000);
  Trace trace = open_bytes(file.file());
  collect(trace);
  REQUIRE(trace.definitions().processes().size() == 1);
  const reader::Process& process = trace.definitions().processes()[0];
  CHECK(process.is_patched);
  CHECK(process.patch_refusal == ARCTRACE_PATCH_THREADS);
  REQUIRE(process.switched_off.size() == 2);
  CHECK(process.switched_off.at(0x20) < process.switched_off.at(0x10));
}

TEST_CASE("filters of calls: those of programs, and the live ones one after another") {
  FileBuilder file;
  BlockBuilder block = BlockBuilder::shared(0, 50, ARCTRACE_CLASS_DEFINITIONS);
  const std::string own("time:1000\0+a*\0", 14);
  block.add_full(ARCTRACE_TYPE_PROCESS, 1, 50, process_body({}));
  block.add_full(ARCTRACE_TYPE_PROCESS, 1, 50, process_body({.process = 2, .pid = 102}));
  block.add_full(ARCTRACE_TYPE_PROCESS, 1, 50, process_body({.process = 3, .pid = 103}));
  block.add_full(ARCTRACE_TYPE_STRING, 1, 60, string_body(1, 0, own));
  block.add_full(ARCTRACE_TYPE_STRING, 1, 60, string_body(1, 5, "a name"));
  block.add_full(ARCTRACE_TYPE_STRING, 1, 60, string_body(3, 0, own.substr(0, 12)));
  file.block(block);
  const auto enabled = [](const std::string& text) {
    return pair_body(ARCTRACE_GATE_ALL, static_cast<uint32_t>(text.size())).padded(text);
  };
  Bytes records;
  const auto add = [&](uint64_t ticks, const std::string& text) {
    records.append(full_record(ARCTRACE_TYPE_ENABLED, 0, ticks, enabled(text)));
  };
  add(10, "");
  add(300, std::string("-f\0level:2\0", 11));
  add(400, std::string("-f\0", 3));  // this one filters events only
  add(500, std::string("+g\0-h\0", 6));
  add(600, std::string("level:2\0", 8));
  file.records(records).finish(1000);
  Trace trace = open_bytes(file.file());
  collect(trace);
  const reader::Definitions& definitions = trace.definitions();
  REQUIRE(definitions.processes().size() == 3);
  using Entries = std::vector<std::string>;
  CHECK(definitions.call_filter(0) == Entries{"time:1000", "+a*"});
  CHECK(definitions.call_filter(1).empty());
  CHECK(definitions.call_filter(2) == Entries{"time:1000", "?"});  // it was cut
  CHECK(definitions.names(0) == std::vector<std::string_view>{"a name"});
  const auto live = definitions.live_filters().all();
  REQUIRE(live.size() == 2);
  CHECK(live[0].entries == Entries{"-f"});
  CHECK(live[1].entries == Entries{"+g", "-h"});
  CHECK(live[0].from_ns < live[0].to_ns);
  CHECK(live[0].to_ns == live[1].from_ns);
  CHECK(live[1].from_ns < live[1].to_ns);
  CHECK(live[1].to_ns != INT64_MAX);
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
  // Later records come first: a definition may come after its use.
  block.add_full(ARCTRACE_TYPE_PROCESS_END, 1, 900,
                 process_end_body(1, ARCTRACE_END_EXIT_DIRECT, 3));
  block.add_full(ARCTRACE_TYPE_THREAD, 1, 80, thread_body(1, 1, 1234, "renamed", 50));
  block.add_full(ARCTRACE_TYPE_THREAD, 1, 60, thread_body(1, 1, 1234, "main", 50));
  block.add_full(ARCTRACE_TYPE_STRING, 1, 60, string_body(1, 5, "five"));
  for (const uint32_t kind :
       {77u, uint32_t{ARCTRACE_HOOK_LIBRARY_CALL}, uint32_t{ARCTRACE_HOOK_XRAY}}) {
    block.add_full(ARCTRACE_TYPE_HOOKED, 1, 60,
                   Bytes().u32(1).u32(kind).u32(0).u64(0x1234));
  }
  block.add_full(
      ARCTRACE_TYPE_MODULE, 1, 60,
      module_body(1, 0x1000, 0x2000, 0x800, "/bin/odd", "12345", ARCTRACE_MODULE_MAIN));
  block.add_full(ARCTRACE_TYPE_MODULE_GONE, 1, 90, module_gone_body(1, 0x1000));
  block.add_full(ARCTRACE_TYPE_EVENT_LAYOUT, 1, 60,
                 layout_body(1, 6, "tick", {{ARCTRACE_FIELD_U8, "a"}}, 3));
  block.add_full(ARCTRACE_TYPE_PROCESS, 1, 50, process_body(facts));
  // The thread 2 says twice that it ends; no thread is the writer 3.
  block.add_full(ARCTRACE_TYPE_THREAD, 2, 60, thread_body(2, 1, 1235, "ends", 55));
  for (const uint32_t writer : {2u, 3u}) {
    for (const uint64_t ticks : {800u, 790u}) {
      block.add_full(ARCTRACE_TYPE_PHASE, writer, ticks,
                     Bytes().u32(1).u32(ARCTRACE_LIFE_THREAD_END).u32(writer).u32(0));
    }
  }
  // Starts of the tracer are in order of time; one that ends before it begins is none.
  for (const auto& [from, until] : {std::pair{70u, 75u}, {52u, 58u}, {56u, 54u}}) {
    block.add_full(ARCTRACE_TYPE_PHASE, 1, until,
                   Bytes().u32(1).u32(ARCTRACE_LIFE_TRACED).u64(from));
  }
  file.block(block);
  Bytes records;
  records.append(full_record(ARCTRACE_TYPE_SYSTEM, 0, 10,
                             system_body("host", "6.1.0", std::string("a\0b c\0", 6))));
  records.append(full_record(ARCTRACE_TYPE_CHILD_STATUS, 0, 950, pair_body(1234, 768)));
  records.append(
      full_record(ARCTRACE_TYPE_WRITER_END, 0, 940, pair_body(1, ARCTRACE_WRITER_DIED)));
  records.append(
      full_record(ARCTRACE_TYPE_WRITER_END, 0, 930, pair_body(2, ARCTRACE_WRITER_DIED)));
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
  REQUIRE(process.tracer_starts.size() == 2);
  CHECK(process.tracer_starts[0].from_ns == 52);
  CHECK(process.tracer_starts[0].until_ns == 58);
  CHECK(process.tracer_starts[1].from_ns == 70);
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
  CHECK(process.modules[0].hook_kind == ARCTRACE_HOOK_XRAY);
  REQUIRE(definitions.threads().size() == 2);
  const reader::ThreadIndex thread = definitions.find_thread(1);
  CHECK(definitions.threads()[thread].tid == 1234);
  CHECK(definitions.threads()[thread].end_ns == 940);
  const reader::Thread& ended = definitions.threads()[definitions.find_thread(2)];
  CHECK(ended.end_ns == 800);
  CHECK(ended.alive_ns == 800);
  CHECK(definitions.thread_name(thread, 79) == "main");
  CHECK(definitions.thread_name(thread, 80) == "renamed");
  CHECK(definitions.name(0, 5) == "five");
  REQUIRE(definitions.layout(0, 6) != nullptr);
  CHECK(definitions.layout(0, 6)->level == 3);
  CHECK(definitions.layout(0, 6)->fields[0].name == "a");
  CHECK(trace.session().host == "host");
  CHECK(trace.session().kernel == "6.1.0");
  CHECK(trace.session().recorder_command == std::vector<std::string>{"a", "b c"});
  CHECK(trace.session().child_wait_status == 768);
}

TEST_CASE("an end that only the copying of a buffer showed is not known") {
  FileBuilder file;
  BlockBuilder block = BlockBuilder::shared(0, 50, ARCTRACE_CLASS_DEFINITIONS);
  block.add_full(ARCTRACE_TYPE_PROCESS, 1, 50, process_body({}));
  for (const uint32_t writer : {1u, 2u}) {
    block.add_full(ARCTRACE_TYPE_THREAD, writer, 60, thread_body(writer, 1, writer, "t"));
  }
  file.block(block);
  const auto end_of = [](uint32_t writer, uint64_t ticks) {
    return full_record(ARCTRACE_TYPE_WRITER_END, 0, ticks,
                       pair_body(writer, ARCTRACE_WRITER_DIED));
  };
  Bytes records;
  records.append(end_of(1, 100));
  records.append(full_record(ARCTRACE_TYPE_SESSION, 0, 900,
                             pair_body(ARCTRACE_SESSION_DUMP_BEGIN, 0)));
  records.append(end_of(2, 950));
  file.records(records).finish(1000);
  Trace trace = open_bytes(file.file());
  const reader::Definitions& definitions = trace.definitions();
  CHECK(definitions.known_until_ns() == 900);
  const reader::Thread& seen = definitions.threads()[definitions.find_thread(1)];
  CHECK(seen.end_ns == 100);
  CHECK_FALSE(seen.ended_unseen);
  const reader::Thread& unseen = definitions.threads()[definitions.find_thread(2)];
  CHECK(unseen.end_ns == INT64_MAX);
  CHECK(unseen.ended_unseen);
  CHECK(definitions.processes()[unseen.process].died_unseen);
}

TEST_CASE(
    "the time of a trace goes to the end that a thread told, later than the kernel") {
  for (const bool is_told : {true, false}) {
    CAPTURE(is_told);
    FileBuilder file;
    BlockBuilder block = BlockBuilder::shared(0, 50, ARCTRACE_CLASS_DEFINITIONS);
    ProcessFacts facts;
    facts.pid = 1234;
    block.add_full(ARCTRACE_TYPE_PROCESS, 1, 50, process_body(facts));
    block.add_full(ARCTRACE_TYPE_THREAD, 2, 60, thread_body(2, 1, 1235, "ends", 60));
    if (is_told) {
      block.add_full(ARCTRACE_TYPE_PHASE, 2, 800,
                     Bytes().u32(1).u32(ARCTRACE_LIFE_THREAD_END).u32(2).u32(0));
    }
    file.block(block);
    BlockBuilder of_cpu = BlockBuilder::shared(2, 0);
    of_cpu.header.writer = ARCTRACE_WRITER_KERNEL;
    of_cpu.add_full(ARCTRACE_TYPE_SWITCH, ARCTRACE_WRITER_KERNEL | 1235, 100,
                    Bytes().u32(0).u32(1234).u32(0).u32(0).u32(0));
    file.block(of_cpu);
    Bytes records;
    records.append(full_record(ARCTRACE_TYPE_WRITER_END, 0, 950,
                               pair_body(2, ARCTRACE_WRITER_DIED)));
    file.records(records).finish(1000);
    Trace trace = open_bytes(file.file());
    collect(trace);
    CHECK(trace.summary().first_ns == 60);
    CHECK(trace.summary().last_ns == (is_told ? 800 : 100));
  }
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

TEST_CASE("a writer without THREAD is known by its block") {
  FileBuilder file;
  file.block(
      BlockBuilder::exclusive(9, 0, 0, 100, 4, 44, 45).stack(100, {}).enter(101, 1));
  file.block(BlockBuilder::shared(1, 100).add_full(ARCTRACE_TYPE_INSTANT, 10, 102,
                                                   Bytes().u32(1)),
             0, 1);
  file.block(BlockBuilder::shared(2, 100).add_full(95, ARCTRACE_WRITER_KERNEL | 77, 103,
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

TEST_CASE("a file that processes name by several paths is one module") {
  FileBuilder file;
  BlockBuilder block = BlockBuilder::shared(0, 0, ARCTRACE_CLASS_DEFINITIONS);
  block.add_full(ARCTRACE_TYPE_PROCESS, 1, 0, process_body({}));
  struct Named {
    std::string path, build_id;
    uint64_t inode;
    std::string shown;
  };
  const std::vector<Named> all = {
      {"/lib/c.so", "aaaa", 5, "/lib/c.so"},
      {"/usr/lib/c.so", "aaaa", 5, "/lib/c.so"},
      {"/usr/lib/c.so", "bbbb", 5, "/usr/lib/c.so"},  // it was replaced
      {"/usr/lib/c.so", "aaaa", 6, "/usr/lib/c.so"},  // a copy
      {"/usr/lib/d.so", "aaaa", 5, "/usr/lib/d.so"},  // a link of another name
      {"/tmp/c.so", "", 5, "/tmp/c.so"},
      {"/tmp/c.so", "aaaa", 0, "/tmp/c.so"},
  };
  uint64_t address = 0x1000;
  for (const Named& named : all) {
    block.add_full(ARCTRACE_TYPE_MODULE, 1, 8,
                   module_body(1, address, address + 0x1000, 0, named.path,
                               named.build_id, 0, named.inode));
    address += 0x1000;
  }
  file.block(block).finish(20);
  Trace trace = open_bytes(file.file());
  CHECK(rules_of(trace) == Rules{});
  const std::vector<reader::Module>& modules = trace.definitions().processes()[0].modules;
  REQUIRE(modules.size() == all.size());
  for (size_t i = 0; i < all.size(); ++i) {
    INFO(all[i].path, " ", all[i].build_id, " ", all[i].inode);
    CHECK(modules[i].path == all[i].shown);
  }
}

}  // namespace
}  // namespace arctrace::testing
