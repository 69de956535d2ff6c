#include "src/collector/collector.hpp"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <ctime>
#include <utility>

#include "src/clock.hpp"
#include "src/collector/clock_source.hpp"
#include "src/collector/record_builder.hpp"
#include "src/collector/session_records.hpp"
#include "src/protocol/dead_slot.hpp"
#include "src/robust_lock.hpp"

namespace arctrace {
namespace {

using A = IpcAtomics;

// Often enough that a buffer of the default size, filled by two writers at full speed,
// is met before it is full even without a wake-up; rare enough to cost nothing.
constexpr long kPollNs = 20'000'000;
constexpr uint64_t kSyncIntervalNs = 1'000'000'000;

void write_records(TraceFile& file, RecordBuilder& records, uint64_t ticks) {
  file.write_chunk(ARCTRACE_CHUNK_RECORDS, 0, 0, ticks, records.bytes());
}

}  // namespace

Collector::Collector(Buffer& buffer, TraceFile file,
                     const std::vector<std::string>& command_line, bool resumed)
    : buffer_(buffer), file_(std::move(file)), drain_(buffer.view(), file_) {
  file_.write_header(buffer.header());
  const uint64_t now = read_ticks(buffer_.view().geometry().clock);
  RecordBuilder records;
  say_start(records, now, command_line, resumed);
  write_records(file_, records, now);
  sync_clocks();
  thread_ = std::thread([this] { run(); });
}

Collector::~Collector() {
  if (thread_.joinable()) finish();
}

void Collector::sync_clocks() {
  const ClockSync sync = take_clock_sync(buffer_.view().geometry().clock);
  last_sync_ns_ = sync.monotonic_ns;
  RecordBuilder records;
  say_clock_sync(records, sync);
  write_records(file_, records, sync.ticks);
}

absl::Status Collector::publish() {
  const std::lock_guard lock(mutex_);
  has_name_ = true;
  return file_.publish();
}

absl::StatusOr<std::string> Collector::snapshot() {
  return absl::FailedPreconditionError(
      "no snapshot: only a recording with --mode=overwrite keeps records to take one of");
}

void Collector::child_ended(uint32_t pid, int wait_status) {
  const std::lock_guard lock(mutex_);
  const uint64_t now = read_ticks(buffer_.view().geometry().clock);
  RecordBuilder records;
  say_child_status(records, now, pid, wait_status);
  write_records(file_, records, now);
}

void Collector::run() {
  arctrace_control& control = buffer_.view().control();
  robust_lock({control.collector_lock, control.collector_robust_prev,
               control.collector_robust_next},
              0, static_cast<uint32_t>(gettid()));
  A::store_relaxed(control.collector_pid, static_cast<uint32_t>(getpid()));
  const bool keeps_all = buffer_.view().geometry().mode == ARCTRACE_MODE_STOP;
  for (;;) {
    {
      const std::lock_guard lock(mutex_);
      if (stopping_) return;
      if (!keeps_all && has_name_) drain_.round();
      if (read_monotonic_ns() - last_sync_ns_ >= kSyncIntervalNs) sync_clocks();
    }
    wait_for_work();
  }
}

// Sleeps until a writer passes the high-water mark, finish() is called, or a while.
void Collector::wait_for_work() {
  arctrace_control& control = buffer_.view().control();
  const timespec timeout{0, kPollNs};
  syscall(SYS_futex, &control.wake, FUTEX_WAIT, 0, &timeout, nullptr, 0);
  A::exchange_acquire(control.wake, uint32_t{0});
}

CollectorSummary Collector::summary_locked() const {
  const arctrace_control& control = buffer_.view().control();
  CollectorSummary summary;
  summary.totals = drain_.totals();
  summary.lost = session_losses(buffer_.view());
  summary.processes = control.process_next - 1;
  summary.threads = control.writer_next - 1;
  summary.file_bytes = file_.bytes();
  summary.file_error = file_.error();
  return summary;
}

CollectorSummary Collector::progress() const {
  const std::lock_guard lock(mutex_);
  return summary_locked();
}

CollectorSummary Collector::finish() {
  buffer_.set_gate(0);
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  arctrace_control& control = buffer_.view().control();
  A::store_release(control.wake, uint32_t{1});
  syscall(SYS_futex, &control.wake, FUTEX_WAKE, 1, nullptr, nullptr, 0);
  thread_.join();

  const std::lock_guard lock(mutex_);
  drain_.finish();
  sync_clocks();
  CollectorSummary summary = summary_locked();
  const int error = file_.error();
  file_.clear_error();
  const uint64_t now = read_ticks(buffer_.view().geometry().clock);
  RecordBuilder records;
  say_session_event(records, now,
                    error == 0 ? ARCTRACE_SESSION_FINISHED : ARCTRACE_SESSION_DISK_FULL,
                    static_cast<uint32_t>(error));
  write_records(file_, records, now);
  summary.file_bytes = file_.bytes();
  if (summary.file_error == 0) summary.file_error = file_.error();
  return summary;
}

}  // namespace arctrace
