// The flight recorder's thread: clock syncs, crashed processes, and snapshots that are
// due.
#include "src/recorder/snapshot/flight_recorder.hpp"

#include <absl/strings/str_cat.h>
#include <unistd.h>

#include <algorithm>
#include <span>
#include <utility>

#include "src/base/shared_atomics.hpp"
#include "src/base/untrusted_bytes.hpp"
#include "src/buffer/buffer_view.hpp"
#include "src/buffer/clock.hpp"
#include "src/protocol/cpu_chain.hpp"
#include "src/protocol/definitions_life.hpp"
#include "src/recorder/buffer/recording_control.hpp"
#include "src/recorder/drain/cpu_blocks.hpp"
#include "src/recorder/drain/drain.hpp"
#include "src/recorder/drain/recorder.hpp"
#include "src/recorder/file/session_records.hpp"
#include "src/recorder/file/trace_file.hpp"
#include "src/recorder/snapshot/snapshot.hpp"

namespace arctrace::recorder {
namespace {

constexpr long kFlightPollNs = 50'000'000;
constexpr size_t kSyncsMax = 1024;

}  // namespace

FlightRecorder::FlightRecorder(Buffer& buffer, TraceFile file, FlightOptions options)
    : buffer_(buffer),
      file_(std::move(file)),
      options_(std::move(options)),
      snapshots_(options_.output, options_.snapshots_kept) {
  past_.recorder = options_.recorder;
  note_clocks();
  last_periodic_ns_ = read_monotonic_ns();
  asked_seen_ = IpcAtomics::load_acquire(buffer_.view().control().snapshots_asked);
  // A polled writer itself takes closed blocks in overwrite mode, too; BPF programs take
  // free ones only.
  if (buffer_.view().geometry().cpu_count != 0 && options_.polled == nullptr) {
    cpu_server_.start(buffer_.view());
  }
  thread_ = std::thread([this] { run(); });
}

FlightRecorder::~FlightRecorder() {
  if (thread_.joinable()) finish();
}

absl::Status FlightRecorder::publish() {
  const std::lock_guard lock(mutex_);
  return file_.publish();
}

// Retains records for the next files; control events only as long as they are few.
void FlightRecorder::note(RecordBuilder& records) {
  constexpr size_t kPastBytesMax = size_t{1} << 20;
  const std::vector<std::byte>& bytes = records.bytes();
  if (past_.records.size() + bytes.size() > kPastBytesMax) return;
  past_.records.insert(past_.records.end(), bytes.begin(), bytes.end());
}

void FlightRecorder::command_started(uint32_t pid, uint64_t from_ticks,
                                     uint64_t to_ticks) {
  const std::lock_guard lock(mutex_);
  RecordBuilder records;
  add_exec(records, from_ticks, pid, to_ticks - from_ticks);
  note(records);
}

void FlightRecorder::child_ended(uint32_t pid, int wait_status) {
  const std::lock_guard lock(mutex_);
  RecordBuilder records;
  add_child_status(records, read_ticks(buffer_.view()), pid, wait_status);
  note(records);
}

void FlightRecorder::clock_word_moved(const ClockWordTimes& times) {
  const std::lock_guard lock(mutex_);
  RecordBuilder records;
  add_clock_word(records, read_ticks(buffer_.view()), times);
  note(records);
}

void FlightRecorder::threads_joined(JoinedThreads joined) {
  const std::lock_guard lock(mutex_);
  joined_.push_back(std::move(joined));
}

void FlightRecorder::run() {
  const Geometry& geometry = buffer_.view().geometry();
  if (options_.polled != nullptr) hurry_this_thread();
  become_collector_thread(options_.runs);
  const long interval_ns = options_.polled == nullptr
                               ? kFlightPollNs
                               : poll_interval_ns(geometry, kFlightPollNs);
  RecorderSleep sleep;
  for (;;) {
    {
      const std::lock_guard lock(mutex_);
      if (stopping_) return;
      maintain_buffer();
      take_due_snapshots();
    }
    // This returns when a program asks for a snapshot, at finish(), or after the
    // interval.
    sleep.wait(buffer_.view().control(), interval_ns, false);
  }
}

void FlightRecorder::take_due_snapshots() {
  arctrace_control& control = buffer_.view().control();
  const uint64_t now = read_monotonic_ns();
  // N2 acquire, matches N1.
  const uint32_t asked = IpcAtomics::load_acquire(control.snapshots_asked);
  if (asked != asked_seen_) {
    const uint32_t requests = asked - asked_seen_;
    asked_seen_ = asked;
    const bool is_early = options_.asked_interval_ns != 0 && last_asked_ns_ != 0 &&
                          now - last_asked_ns_ < options_.asked_interval_ns;
    asked_refused_ += is_early || asked_for_ns_ != 0 ? requests : requests - 1;
    if (asked_for_ns_ == 0 && !is_early) {
      const uint64_t after_ms = IpcAtomics::load_relaxed(control.snapshot_after_ms);
      asked_for_ns_ = now + after_ms * 1'000'000;
    }
  }
  if (asked_for_ns_ != 0 && now >= asked_for_ns_) {
    asked_for_ns_ = 0;
    last_asked_ns_ = now;
    ++asked_taken_;
    take_and_report();
  }
  if (options_.every_ns != 0 && now - last_periodic_ns_ >= options_.every_ns) {
    last_periodic_ns_ = now;
    take_and_report();
  }
  if (crash_seen_) {
    crash_seen_ = false;
    take_and_report();
  }
}

void FlightRecorder::take_and_report() {
  const absl::StatusOr<std::string> name = snapshot_locked();
  if (!options_.print) return;
  options_.print(name.ok() ? "snapshot: " + *name : std::string(name.status().message()));
}

// Whether the last PROCESS_END record of the process says how it ended. A later one with
// ARCTRACE_END_NONE revokes the exec before it.
bool FlightRecorder::has_end(uint32_t process) const {
  const BufferView& view = buffer_.view();
  uint64_t last_ticks = 0;
  uint32_t how = ARCTRACE_END_NONE;
  for (uint32_t i = 0; i < view.geometry().block_count; ++i) {
    arctrace_block_header& header = view.block_header(i);
    if (IpcAtomics::load_acquire(header.magic) != ARCTRACE_BLOCK_MAGIC ||
        !DefinitionsLife<IpcAtomics>::is_definitions(header) ||
        IpcAtomics::load_relaxed(header.process) != process) {
      continue;
    }
    const uint32_t size = view.geometry().block_size;
    for_each_full_record(
        copy_live_block_untrusted(view.block(i), size, size),
        [&](uint16_t type, uint64_t ticks, std::span<const std::byte> body) {
          if (type != ARCTRACE_TYPE_PROCESS_END || ticks < last_ticks ||
              body.size() < sizeof(arctrace_process_end_body)) {
            return;
          }
          last_ticks = ticks;
          how = load_part_untrusted<arctrace_process_end_body>(body).how;
        });
  }
  return how != ARCTRACE_END_NONE;
}

// The processes that have definitions in the buffer, sorted. They include processes that
// attached and died since the last check.
std::vector<uint32_t> FlightRecorder::defined_processes() const {
  const BufferView& view = buffer_.view();
  std::vector<uint32_t> processes;
  for (uint32_t i = 0; i < view.geometry().block_count; ++i) {
    arctrace_block_header& header = view.block_header(i);
    if (IpcAtomics::load_acquire(header.magic) == ARCTRACE_BLOCK_MAGIC &&
        DefinitionsLife<IpcAtomics>::is_definitions(header)) {
      processes.push_back(IpcAtomics::load_relaxed(header.process));
    }
  }
  std::sort(processes.begin(), processes.end());
  processes.erase(std::unique(processes.begin(), processes.end()), processes.end());
  return processes;
}

// Whether a process has gone since the last check without a PROCESS_END record. A process
// that was gone at the last check counts as gone until it is seen to live, although
// is_gone() may return false for it while others attach.
bool FlightRecorder::see_crash() {
  std::vector<uint32_t> gone;
  bool crashed = false;
  const std::vector<uint32_t> living = living_processes(buffer_.view());
  for (const uint32_t process : defined_processes()) {
    if (std::binary_search(living.begin(), living.end(), process)) continue;
    const bool is_known = std::binary_search(gone_.begin(), gone_.end(), process);
    if (!is_known && !DefinitionsLife<IpcAtomics>::is_gone(buffer_.view(), process)) {
      continue;
    }
    gone.push_back(process);
    crashed |= !is_known && !has_end(process);
  }
  gone_ = std::move(gone);
  return crashed;
}

void FlightRecorder::note_control_events() {
  RecordBuilder records;
  past_.moments = add_control_events(records, buffer_.view(), past_.moments);
  note(records);
}

void FlightRecorder::maintain_buffer() {
  if (!stopping_ && options_.polled != nullptr) options_.polled->poll();
  if (options_.on_crash) crash_seen_ |= see_crash();
  if (!stopping_) note_control_events();
  if (read_monotonic_ns() - past_.syncs.back().monotonic_ns >=
      sync_interval_ns(buffer_.view().geometry())) {
    note_clocks();
  }
}

// When there are too many clock syncs, every other one of the older half is dropped.
void FlightRecorder::note_clocks() {
  past_.syncs.push_back(take_clock_sync(buffer_.view().geometry().clock));
  if (past_.syncs.size() < kSyncsMax) return;
  std::vector<ClockSync> kept;
  for (size_t i = 0; i < past_.syncs.size(); ++i) {
    if (i >= kSyncsMax / 2 || i % 2 == 0) kept.push_back(past_.syncs[i]);
  }
  past_.syncs = std::move(kept);
}

absl::StatusOr<std::string> FlightRecorder::snapshot() {
  const std::lock_guard lock(mutex_);
  return snapshot_locked();
}

absl::StatusOr<std::string> FlightRecorder::snapshot_locked() {
  if (options_.output == "-") {
    return absl::FailedPreconditionError("a snapshot needs a file name, not -o -");
  }
  if (options_.polled != nullptr) options_.polled->poll();
  const std::string name = snapshots_.next_name();
  absl::StatusOr<TraceFile> file = TraceFile::create(name);
  if (!file.ok()) return file.status();
  note_clocks();
  write_snapshot_file(buffer_, *file, past_);
  if (file->error() != 0) {
    return absl::ErrnoToStatus(file->error(), absl::StrCat("writing ", name));
  }
  if (absl::Status published = file->publish(); !published.ok()) return published;
  snapshots_.add(file->bytes());
  return name;
}

CollectorSummary FlightRecorder::finish() {
  {
    const std::lock_guard lock(mutex_);
    if (options_.polled != nullptr) options_.polled->finish();
    note_control_events();
    // These snapshots are those that a program asked for shortly before it ended.
    if (options_.asked_interval_ns != 0) take_due_snapshots();
    stopping_ = true;
  }
  close_gate(buffer_.view());
  cpu_server_.stop();
  wake_collector(buffer_.view().control());
  thread_.join();

  const std::lock_guard lock(mutex_);
  CpuChain<IpcAtomics>::close_all(buffer_.view());
  maintain_buffer();
  if (asked_for_ns_ != 0) ++asked_taken_;
  if (asked_for_ns_ != 0 || crash_seen_) take_and_report();
  const BufferView& view = buffer_.view();
  CollectorSummary summary;
  note_clocks();
  past_.with_control_events = false;
  RecordBuilder silent;
  for (const JoinedThreads& joined : joined_) {
    add_silent_threads(silent, read_ticks(view), view, joined);
  }
  note(silent);
  summary.totals = write_snapshot_file(buffer_, file_, past_);
  summary.lost = session_losses(view);
  summary.filtered_out = session_filtered_out(view);
  summary.lost[ARCTRACE_LOST_FILE] += summary.totals.lost_by_file;
  const uint64_t kept = summary.totals.records + summary.totals.torn +
                        summary.totals.unfinished + summary.totals.unsaved;
  const uint64_t written = session_written(view);
  summary.overwritten = written > kept ? written - kept : 0;
  summary.processes = view.control().process_next - 1;
  summary.threads = view.control().writer_next - 1;
  summary.file_bytes = file_.bytes();
  summary.living = static_cast<uint32_t>(distinct_processes(view));
  summary.file_error = file_.error();
  summary.asked_snapshots = asked_taken_;
  summary.refused_snapshots = asked_refused_;
  return summary;
}

int FlightRecorder::write_symbols(std::span<const std::vector<std::byte>> payloads) {
  const std::lock_guard lock(mutex_);
  return file_.write_symbols(read_ticks(buffer_.view()), payloads);
}

}  // namespace arctrace::recorder
