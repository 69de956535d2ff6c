// The collector as a thread: how it ends, how it sleeps and wakes, and what it does
// when the disk is full.
#include "src/recorder/drain/collector.hpp"

#include <arctrace/arctrace.h>
#include <doctest/doctest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <numeric>
#include <thread>
#include <utility>

#include "src/base/shared_atomics.hpp"
#include "src/protocol/block_state.hpp"
#include "src/recorder/buffer/recording_control.hpp"
#include "src/recorder/drain/recorder.hpp"
#include "tests/support/child.hpp"
#include "tests/support/test_session.hpp"

namespace arctrace::testing {
namespace {

// Counts the collector's passes, each of which begins with a poll().
struct CountedRounds : recorder::PolledWriter {
  void poll() override { ++begun; }
  void finish() override {}
  std::atomic<uint32_t> begun = 0;
};

// A buffer and its collector, which has a thread of its own; so this is always in a
// child, which also is the traced program.
struct Recording {
  Recording(const recorder::BufferOptions& options, const std::string& path,
            recorder::PolledWriter* polled = nullptr)
      : buffer(*recorder::Buffer::create(options)),
        lock(buffer.view()),
        collector(buffer,
                  *recorder::TraceFile::create(path, recorder::SpecialFile::kWriteInto),
                  {{"recorder", "-o", "file"}}, {}, {}, polled) {
    recorder::set_gate(buffer.view(), ARCTRACE_GATE_ALL);
    REQUIRE(collector.publish().ok());
    REQUIRE(arctrace_attach(buffer.path().c_str()) == 0);
  }

  arctrace_control& control() { return buffer.view().control(); }

  recorder::Buffer buffer;
  recorder::CollectorLock lock;
  recorder::Collector collector;
};

TEST_CASE("collector: a whole file, from SYSTEM to SESSION_FINISHED") {
  const TemporaryDirectory directory;
  const std::string path = directory.path("trace");
  CHECK_CHILD([&] {
    Recording recording(small_buffer(4096, 1000), path);
    for (uint32_t i = 0; i < 5000; ++i) arctrace_instant(i);
    recording.collector.child_ended(77, 256);
    const recorder::CollectorSummary summary = recording.collector.finish();
    CHECK(arctrace_enabled(ARCTRACE_GATE_ALL) == 0);
    CHECK(summary.file_error == 0);
    CHECK(summary.file_bytes == read_file(path).size());
    CHECK(summary.totals.records == 5000);
    CHECK(summary.processes == 1);
    CHECK(summary.threads == 1);
    CHECK(std::accumulate(summary.lost.begin(), summary.lost.end(), uint64_t{0}) == 0);
  });
  const DecodedTrace trace = decode_trace(read_file(path));
  CHECK(joined(trace.problems) == "");
  CHECK(trace.written() == 5000);
  REQUIRE(trace.collector.size() >= 5);
  const DecodedRecord& system = trace.collector[0];
  CHECK(system.type == ARCTRACE_TYPE_SYSTEM);
  CHECK(system.u32(0) == ARCTRACE_BYTE_ORDER);
  CHECK(system.u32(4) == static_cast<uint32_t>(sysconf(_SC_PAGESIZE)));
  const auto padded = [](uint32_t n) { return (n + 3) / 4 * 4; };
  CHECK(system.text(24 + padded(system.u32(12)) + padded(system.u32(16)),
                    system.u32(20)) == std::string("recorder\0-o\0file\0", 17));
  CHECK(trace.collector[1].type == ARCTRACE_TYPE_SESSION);
  CHECK(trace.collector[1].u32(0) == ARCTRACE_SESSION_STARTED);
  const std::vector<DecodedRecord> syncs = trace.of_type(ARCTRACE_TYPE_CLOCK_SYNC);
  REQUIRE(syncs.size() >= 2);
  for (size_t i = 1; i < syncs.size(); ++i) {  // C1
    CHECK(syncs[i].u64(0) > syncs[i - 1].u64(0));
    CHECK(syncs[i].u64(8) > syncs[i - 1].u64(8));
  }
  const std::vector<DecodedRecord> ended = trace.of_type(ARCTRACE_TYPE_CHILD_STATUS);
  REQUIRE(ended.size() == 1);
  CHECK(ended[0].u32(0) == 77);
  CHECK(ended[0].u32(4) == 256);
}

TEST_CASE("collector: of a thread that goes on, no more is counted than is there") {
  const TemporaryDirectory directory;
  const std::string path = directory.path("trace");
  CHECK_CHILD([&] {
    Recording recording(small_buffer(4096, 1000), path);
    std::atomic<bool> is_over = false;
    std::atomic<bool> has_begun = false;
    std::thread writer([&] {
      while (!is_over) {
        recorder::set_gate(recording.buffer.view(),
                           ARCTRACE_GATE_ALL);  // as if the collector had seen it before
        arctrace_instant(1);
        has_begun = true;
      }
    });
    while (!has_begun) std::this_thread::yield();
    recording.collector.finish();
    is_over = true;
    writer.join();
  });
  const DecodedTrace trace = decode_trace(read_file(path));
  CHECK(joined(trace.problems) == "");
  const DecodedRecord* totals = nullptr;
  for (const DecodedRecord& record : trace.collector) {
    if (record.type == ARCTRACE_TYPE_TOTALS) totals = &record;
  }
  REQUIRE(totals != nullptr);
  CHECK(totals->u64(0) > 0);
  // The thread may have been preempted during the last record.
  CHECK(trace.torn() <= 1);
  CHECK(trace.written() + trace.torn() >= totals->u64(0));
}

TEST_CASE("collector: it makes room while the program runs, and shows its progress") {
  const TemporaryDirectory directory;
  const std::string path = directory.path("trace");
  uint64_t attempts = 0;
  CHECK_CHILD([&] {
    recorder::BufferOptions options = small_buffer(1024, 64);
    options.high_water_percent = 25;
    Recording recording(options, path);
    CHECK(is_live(IpcAtomics::load_acquire(recording.control().collector_lock)) ==
          (IpcAtomics::load_relaxed(recording.control().collector_pid) != 0));
    while (IpcAtomics::load_relaxed(recording.control().freed) < 200) {
      arctrace_instant(1);
      ++attempts;
    }
    CHECK(IpcAtomics::load_relaxed(recording.control().collector_pid) ==
          static_cast<uint32_t>(getpid()));
    CHECK(recording.collector.progress().totals.records > 0);
    recording.collector.finish();
    const DecodedTrace trace = decode_trace(read_file(path));
    CHECK(joined(trace.problems) == "");
    CHECK(trace.written() + trace.lost() == attempts);
  });
}

TEST_CASE("collector: in stop mode nothing is freed, and the oldest is kept") {
  const TemporaryDirectory directory;
  const std::string path = directory.path("trace");
  CHECK_CHILD([&] {
    recorder::BufferOptions options = small_buffer(1024, 64);
    options.mode = ARCTRACE_MODE_STOP;
    options.high_water_percent = 25;
    CountedRounds rounds;
    Recording recording(options, path, &rounds);
    uint32_t attempts = 0;
    while (arctrace_lost(nullptr) < 100000) arctrace_instant(attempts++);
    // The current pass may have begun before the buffer was full; two more follow it.
    const uint32_t wanted = rounds.begun + 3;
    while (rounds.begun < wanted) usleep(1000);
    CHECK(recording.control().freed == 0);
    recording.collector.finish();
    const DecodedTrace trace = decode_trace(read_file(path));
    CHECK(joined(trace.problems) == "");
    CHECK(trace.written() + trace.lost() == attempts);
    const std::vector<DecodedRecord> instants = trace.of_type(ARCTRACE_TYPE_INSTANT);
    REQUIRE(instants.size() > 1000);
    for (uint32_t i = 0; i < instants.size(); ++i) REQUIRE(instants[i].u32(0) == i);
  });
}

TEST_CASE("collector: destroyed without finish() it finishes") {
  const TemporaryDirectory directory;
  const std::string path = directory.path("trace");
  CHECK_CHILD([&] {
    Recording recording(small_buffer(4096, 100), path);
    arctrace_instant(1);
  });
  const DecodedTrace trace = decode_trace(read_file(path));
  CHECK(joined(trace.problems) == "");
  CHECK(trace.written() == 1);
}

TEST_CASE("collector: a device that is full from the start") {
  CHECK_CHILD([] {
    Recording recording(small_buffer(1024, 64), "/dev/full");
    while (arctrace_lost(nullptr) < 1000) arctrace_instant(1);
    const recorder::CollectorSummary summary = recording.collector.finish();
    CHECK(summary.file_error == ENOSPC);
    CHECK(summary.file_bytes == 0);
    CHECK(summary.totals.records == 0);
  });
}

TEST_CASE(
    "collector: a disk that fills: the program goes on, the file records that it was "
    "cut") {
  const TemporaryDirectory directory;
  const std::string path = directory.path("trace");
  CHECK_CHILD([&] {
    signal(SIGXFSZ, SIG_IGN);
    const rlimit size{100001, RLIM_INFINITY};
    recorder::BufferOptions options = small_buffer(1024, 64);
    Recording recording(options, path);
    REQUIRE(setrlimit(RLIMIT_FSIZE, &size) == 0);
    while (recording.collector.progress().file_error == 0) arctrace_instant(1);
    while (arctrace_lost(nullptr) < 1000) arctrace_instant(1);
    const recorder::CollectorSummary summary = recording.collector.finish();
    CHECK(summary.file_error == EFBIG);
    CHECK(summary.file_bytes == read_file(path).size());
    CHECK(summary.totals.records > 1000);
  });
  const DecodedTrace trace = decode_trace(read_file(path));
  CHECK(joined(trace.problems) == "F6: not finished\n");
  REQUIRE_FALSE(trace.collector.empty());
  CHECK(trace.collector.back().type == ARCTRACE_TYPE_SESSION);
  CHECK(trace.collector.back().u32(0) == ARCTRACE_SESSION_DISK_FULL);
  CHECK(trace.collector.back().u32(4) == EFBIG);
}

}  // namespace
}  // namespace arctrace::testing
