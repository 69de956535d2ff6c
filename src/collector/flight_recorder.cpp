#include "src/collector/flight_recorder.hpp"

#include <absl/strings/str_cat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <numeric>
#include <utility>

#include "src/clock.hpp"
#include "src/collector/reaper.hpp"
#include "src/collector/session_records.hpp"
#include "src/collector/snapshot.hpp"
#include "src/robust_lock.hpp"
#include "src/shared_atomics.hpp"

namespace arctrace {
namespace {

constexpr auto kPoll = std::chrono::milliseconds(100);
constexpr uint64_t kSyncIntervalNs = 1'000'000'000;
constexpr size_t kSyncsMax = 1024;
constexpr uint64_t kPastMax = uint64_t{4} << 20;  // bytes

}  // namespace

FlightRecorder::FlightRecorder(Buffer& buffer, TraceFile file, FlightOptions options)
    : buffer_(buffer), file_(std::move(file)), options_(std::move(options)) {
  file_.write_header(buffer_.header());
  note_clocks();
  thread_ = std::thread([this] { run(); });
}

FlightRecorder::~FlightRecorder() {
  if (thread_.joinable()) finish();
}

absl::Status FlightRecorder::publish() {
  const std::lock_guard lock(mutex_);
  return file_.publish();
}

void FlightRecorder::child_ended(uint32_t pid, int wait_status) {
  const std::lock_guard lock(mutex_);
  RecordBuilder said;
  say_child_status(said, read_ticks(buffer_.view().geometry().clock), pid, wait_status);
  remember(said);
}

void FlightRecorder::run() {
  arctrace_control& control = buffer_.view().control();
  robust_lock({control.collector_lock, control.collector_robust_prev,
               control.collector_robust_next},
              0, static_cast<uint32_t>(gettid()));
  IpcAtomics::store_relaxed(control.collector_pid, static_cast<uint32_t>(getpid()));
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    look_after_buffer();
    stop_.wait_for(lock, kPoll);
  }
}

void FlightRecorder::look_after_buffer() {
  RecordBuilder said;
  reap_dead(buffer_.view(), said, [](uint32_t) {});
  remember(said);
  if (read_monotonic_ns() - syncs_.back().monotonic_ns >= kSyncIntervalNs) note_clocks();
}

// When there are too many, every other one of the older half goes.
void FlightRecorder::note_clocks() {
  syncs_.push_back(take_clock_sync(buffer_.view().geometry().clock));
  if (syncs_.size() < kSyncsMax) return;
  std::vector<ClockSync> kept;
  for (size_t i = 0; i < syncs_.size(); ++i) {
    if (i >= kSyncsMax / 2 || i % 2 == 0) kept.push_back(syncs_[i]);
  }
  syncs_ = std::move(kept);
}

void FlightRecorder::remember(RecordBuilder& said) {
  const std::vector<std::byte>& bytes = said.bytes();
  if (bytes.empty()) return;
  past_.push_back(bytes);
  past_bytes_ += bytes.size();
  while (past_bytes_ > kPastMax) {
    past_bytes_ -= past_.front().size();
    past_.pop_front();
  }
}

// All but the header.
DrainTotals FlightRecorder::write(TraceFile& file) {
  const uint32_t clock = buffer_.view().geometry().clock;
  note_clocks();
  RecordBuilder said;
  say_start(said, buffer_.header().start_ticks, options_.command_line);
  for (const ClockSync& sync : syncs_) say_clock_sync(said, sync);
  file.write_chunk(ARCTRACE_CHUNK_RECORDS, 0, 0, read_ticks(clock), said.bytes());
  for (const std::vector<std::byte>& bytes : past_) {
    file.write_chunk(ARCTRACE_CHUNK_RECORDS, 0, 0, read_ticks(clock), bytes);
  }
  Snapshot snapshot(buffer_.view(), file);
  snapshot.write();
  const int error = file.error();
  file.clear_error();
  said.clear();
  const uint64_t now = read_ticks(clock);
  say_session_event(said, now,
                    error == 0 ? ARCTRACE_SESSION_FINISHED : ARCTRACE_SESSION_DISK_FULL,
                    static_cast<uint32_t>(error));
  file.write_chunk(ARCTRACE_CHUNK_RECORDS, 0, 0, now, said.bytes());
  if (error != 0) file.note_error(error);
  return snapshot.totals();
}

absl::StatusOr<std::string> FlightRecorder::snapshot() {
  const std::lock_guard lock(mutex_);
  if (options_.output == "-") {
    return absl::FailedPreconditionError("a snapshot needs a file name, not -o -");
  }
  const std::string name = absl::StrCat(options_.output, ".", snapshots_ + 1);
  absl::StatusOr<TraceFile> file = TraceFile::create(name);
  if (!file.ok()) return file.status();
  file->write_header(buffer_.header());
  write(*file);
  if (file->error() != 0) {
    return absl::ErrnoToStatus(file->error(), absl::StrCat("writing ", name));
  }
  if (absl::Status published = file->publish(); !published.ok()) return published;
  ++snapshots_;
  return name;
}

CollectorSummary FlightRecorder::finish() {
  buffer_.set_gate(0);
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  stop_.notify_all();
  thread_.join();

  const std::lock_guard lock(mutex_);
  look_after_buffer();
  const BufferView& view = buffer_.view();
  CollectorSummary summary;
  summary.totals = write(file_);
  summary.lost = session_losses(view);
  const uint64_t kept =
      summary.totals.records + summary.totals.torn + summary.totals.unfinished;
  const uint64_t written = session_written(view);
  summary.overwritten = written > kept ? written - kept : 0;
  summary.processes = view.control().process_next - 1;
  summary.threads = view.control().writer_next - 1;
  summary.file_bytes = file_.bytes();
  summary.file_error = file_.error();
  return summary;
}

}  // namespace arctrace
