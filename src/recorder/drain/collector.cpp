// The collector lock, the sleep of recorders, and the collector's thread.
#include "src/recorder/drain/collector.hpp"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <ctime>
#include <utility>

#include "src/base/raw_syscall.hpp"
#include "src/base/shared_atomics.hpp"
#include "src/base/untrusted_bytes.hpp"
#include "src/buffer/buffer_view.hpp"
#include "src/buffer/clock.hpp"
#include "src/os/robust_lock.hpp"
#include "src/protocol/block_state.hpp"
#include "src/protocol/cpu_chain.hpp"
#include "src/recorder/buffer/clock_source.hpp"
#include "src/recorder/buffer/recording_control.hpp"
#include "src/recorder/drain/cpu_blocks.hpp"
#include "src/recorder/drain/recorder.hpp"
#include "src/recorder/file/session_records.hpp"
#include "src/recorder/file/trace_file.hpp"

namespace arctrace::recorder {

CollectorLock::CollectorLock(const BufferView& view) {
  std::promise<bool> tried;
  std::future<bool> result = tried.get_future();
  // The holder inherits this, so that signals go to the program's other threads.
  const sys::SignalsBlocked blocked;
  holder_ = std::thread([this, &view, tried = std::move(tried)]() mutable {
    arctrace_control& control = view.control();
    const uint32_t seen = IpcAtomics::load_acquire(control.collector_lock);
    const bool locked =
        !is_live(seen) &&
        robust_lock({control.collector_lock, control.collector_robust_prev,
                     control.collector_robust_next},
                    seen, static_cast<uint32_t>(gettid()));
    if (locked)
      IpcAtomics::store_relaxed(control.collector_pid, static_cast<uint32_t>(getpid()));
    std::future<void> release = release_.get_future();
    tried.set_value(locked);
    release.wait();
  });
  is_held_ = result.get();
}

CollectorLock::~CollectorLock() {
  release_.set_value();
  holder_.join();
}

void reclaim_blocks(const Buffer& buffer) {
  const BufferView& view = buffer.view();
  // The collector itself writes only perf's records. A BPF program may still be writing,
  // and never dies while it does.
  const bool cpus_are_collectors =
      (buffer.header().features_optional & ARCTRACE_FEATURE_PERF) != 0;
  for (uint32_t cpu = 0; cpus_are_collectors && cpu < view.geometry().cpu_count; ++cpu) {
    CpuChain<IpcAtomics>::release(view, cpu);
  }
  for (uint32_t i = 0; i < view.geometry().block_count; ++i) {
    uint64_t seen = IpcAtomics::load_acquire(view.block_header(i).state);
    const BlockState state = BlockState::unpack(seen);
    if (state.slot == ARCTRACE_KERNEL_SLOT) {
      DeadSlot<IpcAtomics>::close_for_owner(view, view.block_header(i), seen);
    }
    if (state.phase != ARCTRACE_PHASE_DRAINING) continue;
    IpcAtomics::compare_exchange_acq_rel(view.block_header(i).state, seen,
                                         state.with(ARCTRACE_PHASE_CLOSED).pack());
  }
}

namespace {

// A process that reads a word a thousand times a second takes about 1 % of a CPU.
constexpr long kShortestStepNs = 1'000'000;

}  // namespace

// Blocks that can't be drained do not end every wait: only more of them do.
bool RecorderSleep::is_past_mark(arctrace_control& control) {
  const uint64_t mark = IpcAtomics::load_relaxed(control.high_water_blocks);
  const uint64_t taken = IpcAtomics::load_relaxed(control.taken);
  if (mark == 0 || blocks_in_use<IpcAtomics>(control) < mark || taken == taken_seen_) {
    return false;
  }
  taken_seen_ = taken;
  return true;
}

void RecorderSleep::wait(arctrace_control& control, long interval_ns, bool busy) {
  if (has_futex_) {
    has_futex_ = wait_for_wake(control, interval_ns) != -EFAULT;
    if (has_futex_) return;
  }
  step_ns_ = busy ? kShortestStepNs : std::max(step_ns_, kShortestStepNs);
  for (long slept_ns = 0; slept_ns < interval_ns; slept_ns += step_ns_) {
    // O2 acquire, matches O1.
    if (IpcAtomics::exchange_acq_rel(control.wake, uint32_t{0}) != 0 ||
        is_past_mark(control)) {
      step_ns_ = kShortestStepNs;
      return;
    }
    const timespec step{0, std::min(step_ns_, interval_ns - slept_ns)};
    nanosleep(&step, nullptr);
  }
  step_ns_ = std::min(step_ns_ * 2, interval_ns);
}

namespace {

// Short enough that a buffer of the default size, filled by two writers at full speed, is
// drained before it is full even without a wake-up; long enough to cost nothing.
constexpr long kPollNs = 20'000'000;

}  // namespace

Collector::Collector(Buffer& buffer, TraceFile file, const RecorderFacts& recorder,
                     const ResumedSession& resumed, FileLimits limits,
                     PolledWriter* polled, const CollectorThread& runs)
    : buffer_(buffer),
      file_(std::move(file)),
      ring_(limits.bytes == 0
                ? nullptr
                : std::make_unique<FileRing>(file_, buffer.header(), recorder, limits,
                                             resumed.is_resumed)),
      polled_(polled),
      runs_(runs),
      code_files_(buffer.header()),
      drain_(buffer.view(), file_, ring_.get(), &code_files_, limits.on_full),
      disk_sync_ns_(limits.sync_ns),
      last_disk_sync_ns_(read_monotonic_ns()) {
  file_.take_reserve();
  file_.keep_index();
  file_.write_header(buffer.header());
  const uint32_t elsewhere = resumed.definitions.empty() ? ARCTRACE_SESSION_ELSEWHERE : 0;
  add_start(records_, read_ticks(buffer_.view()), recorder,
            resumed.is_resumed ? ARCTRACE_SESSION_RESUMED | elsewhere : 0);
  if (ring_ != nullptr) {
    ring_->add_begin(records_, read_ticks(buffer_.view()));
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

void Collector::write_control_events() {
  control_events_ = add_control_events(records_, buffer_.view(), control_events_);
  flush_records();
}

// Records for which there is no space stay, and are written later.
void Collector::flush_records() {
  file_.write_records(read_ticks(buffer_.view()), records_.bytes());
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
  const uint64_t now = read_ticks(buffer_.view());
  add_child_status(records_, now, pid, wait_status);
  flush_records();
}

void Collector::clock_word_moved(const ClockWordTimes& times) {
  const std::lock_guard lock(mutex_);
  add_clock_word(records_, read_ticks(buffer_.view()), times);
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
  become_collector_thread(runs_);
  const long interval_ns = poll_interval_ns(geometry, kPollNs);
  const uint64_t sync_ns = sync_interval_ns(geometry);
  RecorderSleep sleep;
  for (;;) {
    bool busy = false;
    {
      const std::lock_guard lock(mutex_);
      if (stopping_) return;
      if (polled_ != nullptr) polled_->poll();
      write_control_events();
      if (!keeps_all && has_name_) {
        busy = drain_.round() != 0;
        code_files_.scan(drain_.living_processes());
      }
      const uint64_t now_ns = read_monotonic_ns();
      if (now_ns - last_sync_ns_ >= sync_ns) sync_clocks();
      if (disk_sync_ns_ != 0 && now_ns - last_disk_sync_ns_ >= disk_sync_ns_) {
        last_disk_sync_ns_ = now_ns;
        file_.sync();
      }
    }
    // This returns when a writer passes the high-water mark, at finish(), or after the
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
    summary.earlier_files = ring_->retained().count();
    summary.removed = ring_->retained().removed();
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
    write_control_events();
    stopping_ = true;
  }
  close_gate(buffer_.view());
  wake_collector(buffer_.view().control());
  thread_.join();

  const std::lock_guard lock(mutex_);
  drain_.finish();
  for (const JoinedThreads& joined : joined_) {
    add_silent_threads(records_, read_ticks(buffer_.view()), buffer_.view(), joined);
  }
  flush_records();
  code_files_.write(drain_.living_processes(), file_,
                    ring_ == nullptr ? kCodeNamesBytesMax : ring_->code_names_max());
  const int names_error = file_.error();
  if (file_.lacks_space()) file_.clear_error();
  sync_clocks();
  file_.sync();
  CollectorSummary summary = summary_locked();
  if (summary.file_error == 0) summary.file_error = names_error;
  if (summary.file_error == 0 && buffer_.is_cut_off()) summary.file_error = ENODATA;
  const int error = summary.file_error;
  file_.clear_error();
  const uint64_t now = read_ticks(buffer_.view());
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
  return file_.write_symbols(read_ticks(buffer_.view()), payloads);
}

}  // namespace arctrace::recorder
