// Turns a buffer into files for the recording commands: the interface Recorder (Collector
// drains the buffer, FlightRecorder takes snapshots of it), the lock that a recorder
// holds, its sleep, and a writer that it polls.
#pragma once

#include <absl/status/statusor.h>
#include <arctrace/format.h>

#include <cstddef>
#include <cstdint>
#include <future>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "src/buffer/buffer_view.hpp"
#include "src/recorder/buffer/buffer.hpp"
#include "src/recorder/drain/drain.hpp"
#include "src/recorder/file/file_ring.hpp"
#include "src/recorder/file/session_records.hpp"

namespace arctrace::recorder {

// The interface of a writer that has no thread of its own, such as PerfWriter: the
// recorder polls it in each pass and whenever the buffer has to be complete.
class PolledWriter {
 public:
  PolledWriter() = default;
  PolledWriter(const PolledWriter&) = delete;
  PolledWriter& operator=(const PolledWriter&) = delete;
  virtual ~PolledWriter() = default;

  // Writes records of what has happened since the last call. REQUIRES: the caller holds
  // the collector lock, and there is only one call at a time.
  virtual void poll() = 0;

  // Polls for the last time; what happens later is not written. REQUIRES: the gate is
  // still open.
  virtual void finish() = 0;
};

// The sleep of the recorder's thread between its passes.
//
// It sleeps until the wake word is raised, or for an interval. A futex does that, except
// in a buffer that is a BPF map, on whose memory the kernel refuses to wait: there the
// word is read in steps, which are short while records come and grow while none do. The
// high-water mark is checked too, because the kernel's programs wake nobody.
class RecorderSleep {
 public:
  // `has_futex`: the kernel may be asked to wait.
  explicit RecorderSleep(bool has_futex = true) : has_futex_(has_futex) {}

  // Returns once wake_collector() was called, or after `interval_ns`, less than a second.
  // `busy`: the last pass found something to do.
  void wait(arctrace_control& control, long interval_ns, bool busy);

 private:
  bool is_past_mark(arctrace_control& control);

  bool has_futex_;
  long step_ns_ = 0;
  uint64_t taken_seen_ = 0;  // control.taken when the mark last ended a wait
};

// The collector lock: a robust lock in the control page, which at most one recorder
// holds. A thread of its own holds it, so that the kernel releases it however the process
// ends. The recording commands take it before they start a Recorder.
class CollectorLock {
 public:
  explicit CollectorLock(const BufferView& view);
  CollectorLock(const CollectorLock&) = delete;
  CollectorLock& operator=(const CollectorLock&) = delete;
  ~CollectorLock();

  // False: another collector is alive.
  bool is_held() const { return is_held_; }

 private:
  std::promise<void> release_;
  std::thread holder_;
  bool is_held_ = false;
};

// Makes up for the death of an earlier collector. A block that it was copying is still
// complete in the buffer: DRAINING -> CLOSED (BLK-5). A block that it was about to open
// for a CPU is closed too, and the words that name the block in which it wrote a CPU's
// record are cleared.
// REQUIRES: the caller holds the collector lock.
void reclaim_blocks(const Buffer& buffer);

struct CollectorSummary {
  DrainTotals totals;
  std::vector<uint64_t> lost;  // by cause
  uint64_t overwritten = 0;    // records
  uint64_t filtered_out = 0;   // session_filtered_out()
  uint32_t processes = 0;
  uint32_t threads = 0;
  uint32_t living = 0;  // processes that could still write when the recording ended
  uint64_t file_bytes = 0;
  uint64_t earlier_files = 0;  // how many of FILE.1, FILE.2 ... exist (FileRing)
  RemovedFiles removed;        // the removed files; their records are among `totals`
  // The flight recorder's snapshots that programs asked for, and the requests that came
  // too early after one, or together with another.
  uint64_t asked_snapshots = 0;
  uint64_t refused_snapshots = 0;
  int file_error = 0;  // errno: the file ends early
};

class Recorder {
 public:
  Recorder() = default;
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;
  virtual ~Recorder() = default;

  // Gives the trace file its name (TraceFile::publish()); to be called when the recorded
  // program runs. Nothing is drained before, so that records taken out of the buffer are
  // found under that name if this process is killed.
  virtual absl::Status publish() = 0;

  // Records in the file that the recorded command was executed as process `pid`, between
  // these two times of the session's clock; or that a child of the recorder ended.
  virtual void command_started(uint32_t pid, uint64_t from_ticks, uint64_t to_ticks) = 0;
  virtual void child_ended(uint32_t pid, int wait_status) = 0;

  // Records in the file how the clock word moved. To be called once, when it does not
  // move any more.
  virtual void clock_word_moved(const ClockWordTimes& times) = 0;

  // Has finish() record the threads of a process that was joined and that made no call.
  virtual void threads_joined(JoinedThreads joined) = 0;

  // Writes the buffer's present contents into a file of its own, and returns the file's
  // name. kFailedPrecondition: this recorder keeps no records in the buffer.
  virtual absl::StatusOr<std::string> snapshot() = 0;

  // Switches recording off, writes the remaining records and ends the file. To be called
  // once.
  virtual CollectorSummary finish() = 0;

  // After finish(): appends SYMBOLS chunks to the file (TraceFile::write_symbols()).
  virtual int write_symbols(std::span<const std::vector<std::byte>> payloads) = 0;
};

}  // namespace arctrace::recorder
