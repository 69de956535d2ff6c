// When records of the kernel's are missing, and how a trace shows it.
#include <doctest/doctest.h>

#include <initializer_list>
#include <map>
#include <string>
#include <utility>

#include "reader/trace/recorded_times.hpp"
#include "reader/trace/trace.hpp"
#include "tests/support/trace_builder.hpp"
#include "tests/unit/trace/collected.hpp"

namespace arctrace::testing {
namespace {

using reader::kCpuNotKnown;
using reader::KernelGaps;
using reader::Trace;

// Records of one CPU, at these times.
BlockBuilder cpu_block(uint64_t handout, uint32_t cpu,
                       std::initializer_list<uint64_t> times) {
  BlockBuilder block = BlockBuilder::shared(handout, 0);
  block.header.writer = ARCTRACE_WRITER_KERNEL;
  for (const uint64_t ns : times) {
    block.add_full(ARCTRACE_TYPE_SWITCH, ARCTRACE_WRITER_KERNEL | 77, ns,
                   Bytes().u32(cpu).u32(77).u32(0).u32(78).u32(78));
  }
  return block;
}

// A recording of two CPUs, from 100 to 1000. Hand-out 0 is the program's definitions.
struct Recording {
  FileBuilder file;
  Bytes more;  // records of the collector
  uint32_t started_detail = 0;
  uint64_t started_ns = 100;
  bool is_finished = true;  // else it was cut off
  bool is_last = true;      // the last file of its recording, with TOTALS of the session

  void collector(uint32_t type, uint64_t ns, const Bytes& body) {
    more.append(full_record(type, ARCTRACE_WRITER_COLLECTOR, ns, body));
  }
  void session(uint32_t what, uint64_t ns) {
    collector(ARCTRACE_TYPE_SESSION, ns, pair_body(what, 0));
  }
  void enabled(uint64_t ns, uint32_t gate) {
    collector(ARCTRACE_TYPE_ENABLED, ns, pair_body(gate, 0));
  }
  void lost(uint64_t ns, uint32_t cause, uint32_t cpu, uint64_t since_ns) {
    collector(ARCTRACE_TYPE_LOST, ns,
              lost_body(cause, 1, since_ns,
                        ARCTRACE_LOST_SESSION | ARCTRACE_LOST_CPU |
                            cpu << ARCTRACE_LOST_CPU_SHIFT));
  }

  KernelGaps gaps(uint64_t second_handout = 3, bool with_second_cpu = true) {
    Bytes start;
    start.append(full_record(ARCTRACE_TYPE_SYSTEM, ARCTRACE_WRITER_COLLECTOR, started_ns,
                             system_body("vm", "6.1", "arctrace")));
    start.append(full_record(ARCTRACE_TYPE_SESSION, ARCTRACE_WRITER_COLLECTOR, started_ns,
                             pair_body(ARCTRACE_SESSION_STARTED, started_detail)));
    file.header.cpu_count = 2;
    file.header.slots_offset += 2 * sizeof(arctrace_cpu_slot);
    file.records(start);
    file.program({}, 1, "main", 0);
    file.block(cpu_block(1, 0, {200, 300}), 0, 1);
    if (with_second_cpu) file.block(cpu_block(2, 1, {250, 700}), 0, 2);
    file.block(cpu_block(second_handout, 0, {500, 600}), 0, 3);
    if (is_last) {
      Bytes totals = Bytes().u64(0);
      for (int cause = 0; cause < ARCTRACE_LOST_CAUSES; ++cause) totals.u64(0);
      collector(ARCTRACE_TYPE_TOTALS, 1000, totals);
    }
    if (more.size() != 0) file.records(more);
    if (is_finished) file.finish(1000);
    return open_bytes(file.file()).definitions().kernel_gaps();
  }
};

// "from-to" of the gaps that affect a thread on this CPU, or with kCpuNotKnown any other
// one.
std::string text_of_gaps(const KernelGaps& gaps, uint32_t cpu) {
  std::string text;
  int64_t at = -10'000;
  for (bool inside = false; at < 10'000; ++at) {
    const bool now = gaps.next_ns(at, cpu) == at;
    if (now == inside) continue;
    inside = now;
    const bool begins_before = at == -10'000;
    if (inside && !text.empty()) text += ' ';
    if (inside && !begins_before) text += std::to_string(at);
    if (inside) text += '-';
    if (!inside) text += std::to_string(at);
  }
  return text;
}

}  // namespace

TEST_CASE("gaps of a CPU are its own and those of all; any CPU's are all of them") {
  KernelGaps gaps;
  gaps.add(500, 600, 1);
  gaps.add(100, 200, 0);
  gaps.add(150, 300, 0);
  gaps.add(900, 950, kCpuNotKnown);
  gaps.add(700, 700, 1);
  gaps.finish();
  CHECK(gaps.next_ns(0, 0) == 100);
  CHECK(gaps.next_ns(100, 0) == 100);
  CHECK(gaps.next_ns(299, 0) == 299);
  CHECK(gaps.next_ns(300, 0) == 900);
  CHECK(gaps.next_ns(0, 1) == 500);
  CHECK(gaps.next_ns(600, 1) == 900);
  CHECK(gaps.next_ns(0, 7) == 900);
  CHECK(gaps.next_ns(0, kCpuNotKnown) == 100);
  CHECK(gaps.next_ns(300, kCpuNotKnown) == 500);
  CHECK(gaps.next_ns(950, kCpuNotKnown) == INT64_MAX);
  CHECK(KernelGaps().next_ns(0, kCpuNotKnown) == INT64_MAX);
}

TEST_CASE("a whole recording lacks nothing, also if a hand-out was never used") {
  CHECK(Recording().gaps().empty());
  CHECK(Recording().gaps(7).empty());
}

TEST_CASE("switched off and on again, and off up to the end") {
  Recording r;
  r.enabled(400, ARCTRACE_GATE_ALL & ~ARCTRACE_GATE_KERNEL);
  r.enabled(420, 0);
  r.enabled(450, ARCTRACE_GATE_KERNEL);
  r.enabled(800, ARCTRACE_GATE_FUNCTIONS);
  const KernelGaps gaps = r.gaps();
  CHECK(text_of_gaps(gaps, 0) == "400-450 800-");
  CHECK(text_of_gaps(gaps, kCpuNotKnown) == "400-450 800-");
}

TEST_CASE("losses of each cause are of their CPU, from since_ticks on") {
  for (uint32_t cause = 0; cause < ARCTRACE_LOST_CAUSES; ++cause) {
    CAPTURE(cause);
    Recording r;
    r.lost(650, cause, 1, 400);
    r.lost(900, cause, 0, 0);
    const KernelGaps gaps = r.gaps();
    CHECK(text_of_gaps(gaps, 0).empty());
    CHECK(text_of_gaps(gaps, 1) == "400-650");
    CHECK(text_of_gaps(gaps, kCpuNotKnown) == "400-650");
  }
}

TEST_CASE("a file that goes on with another one's recording") {
  Recording r;
  r.started_detail = ARCTRACE_SESSION_RESUMED;
  r.started_ns = 220;
  const KernelGaps gaps = r.gaps(7);
  CHECK(text_of_gaps(gaps, 0) == "-220 300-500");
  CHECK(text_of_gaps(gaps, 1) == "-220");
}

TEST_CASE("a killed recorder's file lacks the blocks that were open") {
  for (const bool is_finished : {false, true}) {
    Recording r;
    r.is_finished = is_finished;
    r.is_last = false;
    const KernelGaps gaps = r.gaps();
    CHECK(text_of_gaps(gaps, 0) == "600-");
    CHECK(text_of_gaps(gaps, 1) == "700-");
    CHECK(text_of_gaps(gaps, kCpuNotKnown) == "600-");
    Recording of_one_cpu;
    of_one_cpu.is_finished = is_finished;
    of_one_cpu.is_last = false;
    CHECK(text_of_gaps(of_one_cpu.gaps(3, false), 1) == "-");
  }
}

TEST_CASE("a snapshot is copied while records are written, and lacks the first ones") {
  Recording flight;
  flight.file.header.mode = ARCTRACE_MODE_OVERWRITE;
  flight.session(ARCTRACE_SESSION_DUMP_BEGIN, 900);
  const KernelGaps gaps = flight.gaps(7);
  CHECK(text_of_gaps(gaps, 0) == "300-500 900-");
  CHECK(text_of_gaps(gaps, 1) == "900-");
}

TEST_CASE("what is recovered after its recorder died has nothing after the last record") {
  Recording r;
  r.session(ARCTRACE_SESSION_DUMP_BEGIN, 900);
  CHECK(text_of_gaps(r.gaps(), 0) == "700-");
}

TEST_CASE("the kernel names threads of processes that are not recorded") {
  BlockBuilder block = cpu_block(1, 0, {200});
  block.add_full(ARCTRACE_TYPE_NAMED, ARCTRACE_WRITER_KERNEL | 300, 210,
                 Bytes().u32(0).u32(300).fill(16, 'x'));
  for (const auto& [tid, tgid] : {std::pair(301u, 300u), {400u, 400u}, {98u, 99u}}) {
    block.add_full(ARCTRACE_TYPE_FORKED, ARCTRACE_WRITER_KERNEL | tid, 220,
                   Bytes().u32(0).u32(tgid).u32(500).u32(500));
  }
  FileBuilder file;
  file.header.creator_pid = 99;
  file.program({}, 1, "main", 0).block(block, 0, 1).finish(1000);
  Trace trace = open_bytes(file.file());
  std::map<uint32_t, bool> foreign;
  for (const reader::Thread& thread : trace.definitions().threads()) {
    if (thread.of_kernel()) foreign[thread.tid] = thread.is_foreign;
  }
  const std::map<uint32_t, bool> expected = {
      {77, false}, {98, true}, {300, true}, {301, true}, {400, false}};
  CHECK(foreign == expected);
}

}  // namespace arctrace::testing
