// The loop that reads a trace through a replay: which listener sees what, in which order,
// and when the loop stops.
#include "reader/streams/replay_run.hpp"

#include <doctest/doctest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "reader/trace/trace.hpp"
#include "tests/support/trace_builder.hpp"
#include "tests/unit/trace/collected.hpp"

namespace arctrace::reader {
namespace {

using testing::BlockBuilder;
using testing::FileBuilder;

// A thread that calls a function `calls` times.
Trace trace_of(uint64_t calls) {
  constexpr uint64_t kFunction = 1;
  FileBuilder file(uint32_t{1} << 20);
  file.program({}, 1, "main", 0);
  BlockBuilder block = BlockBuilder::exclusive(1, 0, 1, 100);
  block.stack(100, {});
  for (uint64_t i = 0; i < calls; ++i) {
    block.enter(static_cast<uint32_t>(101 + 2 * i), kFunction);
    block.exit(static_cast<uint32_t>(102 + 2 * i));
  }
  file.block(block, 0, 1);
  file.finish(200 + 2 * calls);
  return testing::open_bytes(file.file());
}

TEST_CASE("a run gives each record to the replay and to who watches, and finishes") {
  Trace trace = trace_of(3);
  Replay replay(trace.definitions(), nullptr, replay_options_of(trace));
  uint64_t seen = 0;
  ReplayWatch watch;
  watch.record = [&](const Record& /*record*/) { ++seen; };
  const absl::StatusOr<ReplayEnd> end = run_replay(trace, replay, watch);
  REQUIRE(end.ok());
  CHECK_FALSE(end->is_stopped);
  CHECK(end->records == seen);
  CHECK(seen >= 7);
  CHECK(replay.threads().size() == 1);  // before the end there are none
}

TEST_CASE("a run that is stopped is finished only if that is wanted") {
  for (const bool finishes : {false, true}) {
    CAPTURE(finishes);
    Trace trace = trace_of(20'000);
    Replay replay(trace.definitions(), nullptr, replay_options_of(trace));
    std::vector<ReadSoFar> asked;
    ReplayWatch watch;
    watch.finishes_when_stopped = finishes;
    watch.goes = [&](const ReadSoFar& so_far) {
      asked.push_back(so_far);
      return asked.size() < 2;
    };
    const absl::StatusOr<ReplayEnd> end = run_replay(trace, replay, watch);
    REQUIRE(end.ok());
    CHECK(end->is_stopped);
    REQUIRE(asked.size() == 2);
    CHECK(asked[1].records == 2 * asked[0].records);
    CHECK(asked[1].bytes > asked[0].bytes);
    CHECK(asked[1].time_ns > asked[0].time_ns);
    CHECK(end->records == asked[1].records);
    CHECK(replay.threads().empty() == !finishes);
  }
}

TEST_CASE("a run that reads ahead is the same") {
  std::vector<uint64_t> records;
  for (const Reading reading : {Reading::kHere, Reading::kConcurrent}) {
    Trace trace = trace_of(5'000);
    Replay replay(trace.definitions(), nullptr, replay_options_of(trace));
    const absl::StatusOr<ReplayEnd> end = run_replay(trace, replay, {}, reading);
    REQUIRE(end.ok());
    records.push_back(end->records);
    CHECK(replay.finding_count() == 0);
  }
  CHECK(records[0] == records[1]);
}

}  // namespace
}  // namespace arctrace::reader
