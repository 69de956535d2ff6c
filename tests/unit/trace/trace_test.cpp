// Whole traces, one property each: what is read, and in which order.
#include "reader/trace/trace.hpp"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "tests/support/trace_builder.hpp"
#include "tests/unit/trace/collected.hpp"

namespace arctrace::testing {
namespace {

using reader::kNoIndex;
using reader::Trace;
using Rules = std::vector<std::string>;

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
  // Without TOTALS of the session the recording continues in another file: only the
  // thread's last record is known of its end.
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
  file.chunks.data()[32 + 96] ^= std::byte{3};  // damages the hand-out: a finding
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

}  // namespace
}  // namespace arctrace::testing
