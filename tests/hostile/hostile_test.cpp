// One process scribbles over the whole buffer, while honest ones write, one drains it or
// takes snapshots, and one reads. Nobody may crash or hang, no honest process may write
// outside the buffer, and the remaining buffer can be read, with findings.
#include <doctest/doctest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "reader/replay/replay.hpp"
#include "reader/trace/content_check.hpp"
#include "reader/trace/trace.hpp"
#include "src/recorder/buffer/recording_control.hpp"
#include "src/recorder/drain/collector.hpp"
#include "src/recorder/drain/recorder.hpp"
#include "src/recorder/snapshot/flight_recorder.hpp"
#include "src/recorder/snapshot/snapshot.hpp"
#include "tests/hostile/honest_process.hpp"
#include "tests/hostile/scribbler.hpp"
#include "tests/hostile/stage.hpp"
#include "tests/support/child.hpp"
#include "tests/support/effort.hpp"
#include "tests/support/test_session.hpp"

namespace arctrace::testing {
namespace {

// How long to wait for what should come at once, on a machine that does much else.
constexpr uint32_t kPatienceSeconds = 300;

// Reads the trace to its end as `arctrace check` does; returns the number of findings.
uint64_t read_whole(reader::Trace& trace) {
  reader::ContentChecker content(trace);
  reader::Replay replay(trace.definitions(), nullptr);
  const absl::Status status = trace.read([&](const reader::Record& record) {
    content.check_untrusted(record);
    replay.add(record);
    return true;
  });
  REQUIRE_MESSAGE(status.ok(), status.ToString());
  replay.finish();
  return trace.finding_count() + replay.finding_count();
}

uint64_t read_file_whole(const std::string& path) {
  absl::StatusOr<reader::Trace> trace = reader::Trace::open(path);
  REQUIRE_MESSAGE(trace.ok(), trace.status().ToString());
  return read_whole(*trace);
}

// Reads the live buffer as info, dump and check do, and takes snapshots of it.
void read_live(const recorder::Buffer& buffer, const std::string& snapshot,
               Stage& stage) {
  stage.await_begin();
  while (!stage.ended) {
    absl::StatusOr<reader::Trace> live = reader::Trace::open(buffer.path());
    // The scribbler may be writing over the buffer's header just now.
    if (live.ok()) {
      stage.findings += read_whole(*live);
      ++stage.reads;
    }
    absl::StatusOr<recorder::TraceFile> file = recorder::TraceFile::create(snapshot);
    REQUIRE(file.ok());
    recorder::SnapshotPast past;
    past.syncs = recorder::buffer_syncs(buffer, true);
    recorder::write_snapshot_file(buffer, *file, past);
    REQUIRE(file->publish().ok());
    stage.findings += read_file_whole(snapshot);
    ++stage.reads;
  }
}

void collect(recorder::Buffer& buffer, const std::string& output, Stage& stage) {
  REQUIRE(std::freopen("/dev/null", "w", stderr) != nullptr);  // taking a snapshot prints
  absl::StatusOr<recorder::TraceFile> file = recorder::TraceFile::create(output);
  REQUIRE(file.ok());
  REQUIRE(file->publish().ok());
  recorder::FlightOptions flight;
  flight.output = output;
  flight.snapshots_kept.files = 2;
  flight.every_ns = 200'000'000;
  flight.on_crash = true;
  const recorder::CollectorLock collector_lock(buffer.view());
  std::unique_ptr<recorder::Recorder> recorder;
  if (buffer.view().geometry().mode == ARCTRACE_MODE_OVERWRITE) {
    recorder =
        std::make_unique<recorder::FlightRecorder>(buffer, *std::move(file), flight);
  } else {
    recorder = std::make_unique<recorder::Collector>(buffer, *std::move(file),
                                                     recorder::RecorderFacts{{"test"}});
  }
  stage.await_begin();
  while (!stage.ended) usleep(1000);
  CHECK(recorder->finish().file_error == 0);
}

recorder::Buffer small_session(arctrace_mode mode, arctrace_scope scope, Random& random) {
  recorder::BufferOptions options = small_buffer(
      384 + 64 * random.below(60), 4 + random.below(60), 4 + random.below(12));
  options.mode = mode;
  options.scope = scope;
  options.high_water_percent = 50;
  absl::StatusOr<recorder::Buffer> buffer = recorder::Buffer::create(options);
  REQUIRE_MESSAGE(buffer.ok(), buffer.status().ToString());
  recorder::set_gate(buffer->view(), ARCTRACE_GATE_ALL);
  return *std::move(buffer);
}

// Whether each actor has worked, and the reader has seen what the scribbler did.
bool all_have_played(const Stage& stage) {
  const auto has_called = [](const auto& count) { return count > 0; };
  return std::all_of(stage.calls.begin(), stage.calls.end(), has_called) &&
         stage.scribbled > 0 && stage.reads > 0 && stage.findings > 0;
}

void play(arctrace_mode mode, arctrace_scope scope, uint32_t seconds) {
  Random random(test_seed() + uint64_t{mode} * 8 + uint64_t{scope});
  const TemporaryDirectory directory;
  recorder::Buffer buffer = small_session(mode, scope, random);
  CAPTURE(buffer.view().geometry().block_size);
  CAPTURE(buffer.view().geometry().block_count);
  const std::shared_ptr<Stage> stage = make_stage();
  const std::string collected = directory.path("collected");
  struct Actor {
    std::string name;
    int pid;
  };
  std::vector<Actor> cast;
  for (uint32_t number = 0; number < Stage::kHonest; ++number) {
    const uint64_t seed = random.next();
    cast.push_back({"honest " + std::to_string(number), start_child([&, seed, number] {
                      write_honestly(buffer.path(), number, seed, *stage);
                    })});
  }
  cast.push_back({"reader", start_child([&] {
                    read_live(buffer, directory.path("snapshot"), *stage);
                  })});
  cast.push_back({"collector", start_child([&] { collect(buffer, collected, *stage); })});
  while (stage->ready < cast.size()) usleep(1000);
  const uint64_t seed = random.next();
  cast.push_back(
      {"scribbler", start_child([&] { scribble(buffer.path(), seed, *stage); })});
  sleep(seconds);
  for (uint32_t more = 0; more < kPatienceSeconds && !all_have_played(*stage); ++more) {
    sleep(1);
  }
  stage->ended = true;
  for (const Actor& actor : cast) {
    CAPTURE(actor.name);
    CHECK(wait_at_most(actor.pid, kPatienceSeconds) == "");
  }
  uint64_t calls = 0;
  for (const auto& count : stage->calls) {
    CHECK(count > 0);
    calls += count;
  }
  CHECK(stage->scribbled > 0);
  CHECK(stage->reads > 0);
  const uint64_t findings = stage->findings + read_file_whole(collected);
  CHECK(findings > 0);
  MESSAGE("mode ", mode, ", scope ", scope, ": ", stage->scribbled.load(),
          " words scribbled, ", calls, " calls, ", stage->reads.load(), " traces read, ",
          findings, " findings");
}

void play_scopes(arctrace_mode mode) {
  for (const arctrace_scope scope : {ARCTRACE_SCOPE_THREAD, ARCTRACE_SCOPE_SHARED}) {
    CAPTURE(scope);
    play(mode, scope, is_long() ? 300 : 1);
  }
}

TEST_CASE("hostile writer: drop mode") { play_scopes(ARCTRACE_MODE_DROP); }

TEST_CASE("hostile writer: overwrite mode") { play_scopes(ARCTRACE_MODE_OVERWRITE); }

}  // namespace
}  // namespace arctrace::testing
