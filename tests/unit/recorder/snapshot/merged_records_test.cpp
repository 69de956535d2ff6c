// Merges the file of a collector that died with the buffer that it abandoned: LOST
// records count every loss once, wherever the collector died.
#include "src/recorder/snapshot/merged_records.hpp"

#include <arctrace/arctrace.h>
#include <doctest/doctest.h>
#include <unistd.h>

#include <csignal>

#include "src/recorder/buffer/recording_control.hpp"
#include "src/recorder/file/session_records.hpp"
#include "src/recorder/snapshot/snapshot.hpp"
#include "tests/support/child.hpp"
#include "tests/support/test_session.hpp"

namespace arctrace::testing {
namespace {

// A file that a collector wrote before it died.
class EarlierFile {
 public:
  explicit EarlierFile(const TestSession& test) : test_(test) {
    absl::StatusOr<recorder::TraceFile> made =
        recorder::TraceFile::create(directory_.path("earlier"));
    REQUIRE(made.ok());
    file_ = std::make_unique<recorder::TraceFile>(*std::move(made));
    file_->write_header(test.buffer().header());
  }
  recorder::TraceFile& file() { return *file_; }

  void write(recorder::RecordBuilder& records) {
    file_->write_records(1, records.bytes());
  }

  DecodedTrace merged() {
    REQUIRE(file_->publish().ok());
    auto chunks = recorder::read_chunks_untrusted(directory_.path("earlier"),
                                                  test_.buffer().header(), true);
    REQUIRE(chunks.ok());
    absl::StatusOr<recorder::TraceFile> made =
        recorder::TraceFile::create(directory_.path("merged"));
    REQUIRE(made.ok());
    recorder::SnapshotPast past;
    past.earlier = *std::move(chunks);
    past.is_merged = true;
    recorder::write_snapshot_file(test_.buffer(), *made, past);
    REQUIRE(made->publish().ok());
    return decode_trace(read_file(directory_.path("merged")));
  }

 private:
  const TestSession& test_;
  TemporaryDirectory directory_;
  std::unique_ptr<recorder::TraceFile> file_;
};

// The losses of all writers and causes.
uint64_t lost(const DecodedTrace& trace) {
  uint64_t sum = 0;
  for (const DecodedRecord& record : trace.of_type(ARCTRACE_TYPE_LOST)) {
    sum += record.u64(8);
  }
  return sum;
}

void lose_and_die(const TestSession& test, int count) {
  const int pid = start_child([&] {
    join(test);
    const std::byte too_big[2000] = {};
    arctrace_instant(1);
    for (int i = 0; i < count; ++i) arctrace_write(1, too_big, sizeof too_big);
    kill(getpid(), SIGKILL);
  });
  CHECK(wait_for_child(pid) == "signal 9");
}

TEST_CASE("merged: a loss that was written and not confirmed counts once") {
  TestSession test(small_buffer(1024, 32));
  lose_and_die(test, 3);
  EarlierFile earlier(test);
  recorder::RecordBuilder records;
  recorder::add_lost(records, 10, 1, ARCTRACE_LOST_TOO_BIG, ARCTRACE_LOST_RESIDUAL, 3, 1);
  // For a writer whose loss is confirmed, only the file has it.
  recorder::add_lost(records, 10, 7, ARCTRACE_LOST_TOO_BIG, ARCTRACE_LOST_RESIDUAL, 5, 1);
  earlier.write(records);
  CHECK(lost(earlier.merged()) == 3 + 5);
}

TEST_CASE("merged: what the drain has confirmed counts once") {
  TestSession test(small_buffer(1024, 32));
  lose_and_die(test, 3);
  EarlierFile earlier(test);
  recorder::Drain drain(test.view(), earlier.file());
  while (drain.round() > 0) {
  }
  lose_and_die(test, 2);
  const DecodedTrace trace = earlier.merged();
  CHECK(lost(trace) == 3 + 2);
  CHECK(trace.written() == 2);
}

TEST_CASE("merged: losses that no slot counts, and those of CPUs") {
  recorder::BufferOptions options = small_buffer(1024, 32);
  options.cpu_count = 2;
  TestSession test(options);
  const BufferView& view = test.view();
  view.control().lost[ARCTRACE_LOST_NO_SLOT] = 4;
  // Of CPU 0's losses, 10 are confirmed and 5 not; all 7 of CPU 1 are confirmed.
  view.cpu_slot(0).lost = 20;
  view.cpu_slot(0).reported = 10;
  view.cpu_slot(1).lost = view.cpu_slot(1).reported = 7;
  EarlierFile earlier(test);
  recorder::RecordBuilder records;
  const auto of_cpu = [](uint32_t cpu) {
    return ARCTRACE_LOST_SESSION | ARCTRACE_LOST_CPU | cpu << ARCTRACE_LOST_CPU_SHIFT;
  };
  recorder::add_lost(records, 10, 0, ARCTRACE_LOST_KERNEL, of_cpu(0), 10, 1);
  recorder::add_lost(records, 10, 0, ARCTRACE_LOST_KERNEL, of_cpu(1), 7, 1);
  earlier.write(records);
  records.clear();
  recorder::add_lost(records, 20, 0, ARCTRACE_LOST_KERNEL, of_cpu(0), 5, 1);
  recorder::add_lost(records, 20, 0, ARCTRACE_LOST_NO_SLOT, ARCTRACE_LOST_SESSION, 4,
                     recorder::session_start_ticks(view));
  recorder::add_session_event(records, 20, ARCTRACE_SESSION_FINISHED, 0);
  earlier.write(records);
  const DecodedTrace trace = earlier.merged();
  CHECK(lost(trace) == 20 + 7 + 4);
  uint64_t ends = 0;
  for (const DecodedRecord& session : trace.of_type(ARCTRACE_TYPE_SESSION)) {
    if (session.u32(0) == ARCTRACE_SESSION_FINISHED) ++ends;
  }
  CHECK(ends == 1);
}

TEST_CASE("merged: blocks for which the file had no room are not lost any more") {
  TestSession test(small_buffer(1024, 32));
  lose_and_die(test, 0);  // one record, in the buffer
  EarlierFile earlier(test);
  recorder::RecordBuilder records;
  // Two more were removed for definitions: these are lost.
  recorder::add_lost(records, 10, 1, ARCTRACE_LOST_FILE, ARCTRACE_LOST_RESIDUAL, 3, 1);
  recorder::add_session_event(records, 20, ARCTRACE_SESSION_DISK_FULL, 28);
  earlier.write(records);
  const DecodedTrace trace = earlier.merged();
  CHECK(lost(trace) == 2);
  CHECK(trace.written() == 1);
}

}  // namespace
}  // namespace arctrace::testing
