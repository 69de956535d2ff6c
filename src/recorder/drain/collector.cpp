#include "src/recorder/drain/collector.hpp"

#include <cerrno>
#include <utility>

#include "src/base/untrusted_bytes.hpp"
#include "src/buffer/clock.hpp"
#include "src/buffer/wake_word.hpp"
#include "src/recorder/buffer/clock_source.hpp"
#include "src/recorder/buffer/recording_control.hpp"
#include "src/recorder/buffer/session_totals.hpp"
#include "src/recorder/drain/cpu_blocks.hpp"
#include "src/recorder/drain/cpu_server.hpp"
#include "src/recorder/drain/recorder_sleep.hpp"
#include "src/recorder/file/record_builder.hpp"
#include "src/recorder/file/session_records.hpp"

namespace arctrace {
namespace {

// Often enough that a buffer of the default size, filled by two writers at full speed, is
// drained before it is full even without a wake-up; rare enough to cost nothing.
constexpr long kPollNs = 20'000'000;

}  // namespace

Collector::Collector(Buffer& buffer, TraceFile file, const RecorderFacts& recorder,
                     const ResumedSession& resumed, FileLimits limits,
                     PolledWriter* polled)
    : buffer_(buffer),
      file_(std::move(file)),
      ring_(limits.bytes == 0
                ? nullptr
                : std::make_unique<FileRing>(file_, buffer.header(), recorder, limits,
                                             resumed.is_resumed)),
      polled_(polled),
      code_files_(buffer.header()),
      drain_(buffer.view(), file_, ring_.get(), &code_files_, limits.on_full),
      disk_sync_ns_(limits.sync_ns),
      last_disk_sync_ns_(read_monotonic_ns()) {
  file_.take_reserve();
  file_.keep_index();
  file_.write_header(buffer.header());
  const uint32_t elsewhere = resumed.definitions.empty() ? ARCTRACE_SESSION_ELSEWHERE : 0;
  add_start(records_, read_ticks(buffer_.view().geometry().clock), recorder,
            resumed.is_resumed ? ARCTRACE_SESSION_RESUMED | elsewhere : 0);
  if (ring_ != nullptr) {
    ring_->add_begin(records_, read_ticks(buffer_.view().geometry().clock));
  }
  flush_records();
  write_earlier(resumed.definitions);
  sync_clocks();
  thread_ = std::thread([this] { run(); });
}

void Collector::write_earlier(const std::vector<EarlierChunk>& definitions) {
  for (const EarlierChunk& block : definitions) {
    file_.write_chunk(ARCTRACE_CHUNK_BLOCK, ARCTRACE_CHUNK_LIVE_COPY, block.header.index,
                      block.header.ticks, block.payload);
    if (ring_ == nullptr) continue;
    const auto header = load_part_untrusted<arctrace_block_header>(block.payload);
    ring_->remember(header, block.header.index,
                    std::span(block.payload).subspan(sizeof header));
  }
}

Collector::~Collector() {
  if (thread_.joinable()) finish();
}

void Collector::sync_clocks() {
  const ClockSync sync = take_clock_sync(buffer_.view().geometry().clock);
  last_sync_ns_ = sync.monotonic_ns;
  RecordBuilder records;
  add_clock_sync(records, sync);
  file_.write_records(sync.ticks, records.bytes());
}

void Collector::write_moments() {
  moments_ = add_moments(records_, buffer_.view(), moments_);
  flush_records();
}

// What there is no room for stays, and is written later.
void Collector::flush_records() {
  file_.write_records(read_ticks(buffer_.view().geometry().clock), records_.bytes());
  if (file_.error() == 0) records_.clear();
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

void Collector::command_started(uint32_t pid, uint64_t from_ticks, uint64_t to_ticks) {
  const std::lock_guard lock(mutex_);
  add_exec(records_, from_ticks, pid, to_ticks - from_ticks);
  flush_records();
}

void Collector::child_ended(uint32_t pid, int wait_status) {
  const std::lock_guard lock(mutex_);
  const uint64_t now = read_ticks(buffer_.view().geometry().clock);
  add_child_status(records_, now, pid, wait_status);
  flush_records();
}

void Collector::threads_joined(JoinedThreads joined) {
  const std::lock_guard lock(mutex_);
  joined_.push_back(std::move(joined));
}

void Collector::run() {
  const Geometry& geometry = buffer_.view().geometry();
  const bool keeps_all = geometry.mode == ARCTRACE_MODE_STOP;
  if (geometry.cpu_count != 0) hurry_this_thread();
  const long interval_ns = poll_interval_ns(geometry, kPollNs);
  const uint64_t sync_ns = sync_interval_ns(geometry);
  RecorderSleep sleep;
  for (;;) {
    bool busy = false;
    {
      const std::lock_guard lock(mutex_);
      if (stopping_) return;
      if (polled_ != nullptr) polled_->poll();
      write_moments();
      if (!keeps_all && has_name_) {
        busy = drain_.round() != 0;
        code_files_.look(drain_.living_processes());
      }
      const uint64_t now_ns = read_monotonic_ns();
      if (now_ns - last_sync_ns_ >= sync_ns) sync_clocks();
      if (disk_sync_ns_ != 0 && now_ns - last_disk_sync_ns_ >= disk_sync_ns_) {
        last_disk_sync_ns_ = now_ns;
        file_.sync();
      }
    }
    // Returns when a writer passes the high-water mark, at finish(), or after the
    // interval.
    sleep.wait(buffer_.view().control(), interval_ns, busy);
  }
}

CollectorSummary Collector::summary_locked() const {
  const arctrace_control& control = buffer_.view().control();
  CollectorSummary summary;
  summary.totals = drain_.totals();
  summary.lost = session_losses(buffer_.view());
  summary.filtered_out = session_filtered_out(buffer_.view());
  summary.processes = control.process_next - 1;
  summary.threads = control.writer_next - 1;
  summary.file_bytes = file_.bytes();
  summary.lost[ARCTRACE_LOST_FILE] += drain_.lost_by_file();
  summary.living = static_cast<uint32_t>(distinct_processes(buffer_.view()));
  summary.file_error = drain_.file_error();
  if (ring_ != nullptr) {
    summary.earlier_files = ring_->kept().count();
    summary.removed = ring_->kept().removed();
  }
  return summary;
}

CollectorSummary Collector::progress() const {
  const std::lock_guard lock(mutex_);
  return summary_locked();
}

CollectorSummary Collector::finish() {
  {
    const std::lock_guard lock(mutex_);
    if (polled_ != nullptr) polled_->finish();
    write_moments();
    stopping_ = true;
  }
  close_gate(buffer_.view());
  wake_collector(buffer_.view().control());
  thread_.join();

  const std::lock_guard lock(mutex_);
  drain_.finish();
  for (const JoinedThreads& joined : joined_) {
    add_silent_threads(records_, read_ticks(buffer_.view().geometry().clock),
                       buffer_.view(), joined);
  }
  flush_records();
  code_files_.write(drain_.living_processes(), file_,
                    ring_ == nullptr ? kCodeNamesBytesMax : ring_->code_names_max());
  const int names_error = file_.error();
  if (file_.lacks_room()) file_.clear_error();
  sync_clocks();
  file_.sync();
  CollectorSummary summary = summary_locked();
  if (summary.file_error == 0) summary.file_error = names_error;
  if (summary.file_error == 0 && buffer_.is_cut_off()) summary.file_error = ENODATA;
  const int error = summary.file_error;
  file_.clear_error();
  const uint64_t now = read_ticks(buffer_.view().geometry().clock);
  RecordBuilder records;
  add_session_event(records, now,
                    error == 0 ? ARCTRACE_SESSION_FINISHED : ARCTRACE_SESSION_DISK_FULL,
                    static_cast<uint32_t>(error));
  file_.write_records(now, records.bytes());
  if (summary.file_error == 0) summary.file_error = file_.error();
  file_.write_index(now);
  summary.file_bytes = file_.bytes();
  return summary;
}

int Collector::write_symbols(std::span<const std::vector<std::byte>> payloads) {
  const std::lock_guard lock(mutex_);
  return file_.write_symbols(read_ticks(buffer_.view().geometry().clock), payloads);
}

}  // namespace arctrace
