#include "src/collector/collector.hpp"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <ctime>
#include <utility>

#include "src/clock.hpp"
#include "src/collector/clock_source.hpp"
#include "src/collector/record_builder.hpp"
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
                     const std::vector<std::string>& command_line)
    : buffer_(buffer), file_(std::move(file)), drain_(buffer.view(), file_) {
  file_.write_header(buffer.header());
  say_start(command_line);
  say_clock_sync();
  thread_ = std::thread([this] { run(); });
}

Collector::~Collector() {
  if (thread_.joinable()) finish();
}

void Collector::say_start(const std::vector<std::string>& command_line) {
  utsname system{};
  uname(&system);
  std::string arguments;
  for (const std::string& argument : command_line) arguments += argument + '\0';
  // A record's length is 16 bits; a longer command line is cut.
  constexpr size_t kArgumentsMax = 16384;
  if (arguments.size() > kArgumentsMax) arguments.resize(kArgumentsMax);
  const std::string host = system.nodename;
  const std::string release = system.release;
  const uint64_t now = read_ticks(buffer_.view().geometry().clock);
  RecordBuilder records;
  records.begin(ARCTRACE_TYPE_SYSTEM, ARCTRACE_WRITER_COLLECTOR, now);
  records.u32(ARCTRACE_BYTE_ORDER);
  records.u32(static_cast<uint32_t>(sysconf(_SC_PAGESIZE)));
  records.u32(static_cast<uint32_t>(sysconf(_SC_NPROCESSORS_ONLN)));
  records.u32(static_cast<uint32_t>(host.size()));
  records.u32(static_cast<uint32_t>(release.size()));
  records.u32(static_cast<uint32_t>(arguments.size()));
  records.text(host);
  records.text(release);
  records.text(arguments);
  records.begin(ARCTRACE_TYPE_SESSION, ARCTRACE_WRITER_COLLECTOR, now);
  records.u32(ARCTRACE_SESSION_STARTED);
  records.u32(0);
  write_records(file_, records, now);
}

void Collector::say_clock_sync() {
  const ClockSync sync = take_clock_sync(buffer_.view().geometry().clock);
  last_sync_ns_ = sync.monotonic_ns;
  RecordBuilder records;
  records.begin(ARCTRACE_TYPE_CLOCK_SYNC, ARCTRACE_WRITER_COLLECTOR, sync.ticks);
  records.u64(sync.ticks);
  records.u64(sync.monotonic_ns);
  records.u64(sync.realtime_ns);
  write_records(file_, records, sync.ticks);
}

absl::Status Collector::publish() {
  const std::lock_guard lock(mutex_);
  return file_.publish();
}

void Collector::child_ended(uint32_t pid, int wait_status) {
  const std::lock_guard lock(mutex_);
  const uint64_t now = read_ticks(buffer_.view().geometry().clock);
  RecordBuilder records;
  records.begin(ARCTRACE_TYPE_CHILD_STATUS, ARCTRACE_WRITER_COLLECTOR, now);
  records.u32(pid);
  records.u32(static_cast<uint32_t>(wait_status));
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
      if (!keeps_all) drain_.round();
      if (read_monotonic_ns() - last_sync_ns_ >= kSyncIntervalNs) say_clock_sync();
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
  summary.lost = drain_.lost();
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
  say_clock_sync();
  CollectorSummary summary = summary_locked();
  const int error = file_.error();
  file_.clear_error();
  const uint64_t now = read_ticks(buffer_.view().geometry().clock);
  RecordBuilder records;
  records.begin(ARCTRACE_TYPE_SESSION, ARCTRACE_WRITER_COLLECTOR, now);
  records.u32(error == 0 ? ARCTRACE_SESSION_FINISHED : ARCTRACE_SESSION_DISK_FULL);
  records.u32(static_cast<uint32_t>(error));
  write_records(file_, records, now);
  summary.file_bytes = file_.bytes();
  if (summary.file_error == 0) summary.file_error = file_.error();
  return summary;
}

}  // namespace arctrace
