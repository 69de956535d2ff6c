// The recorder of overwrite mode. While recording it writes only the snapshots that are
// asked for, and at the end the buffer's contents. Its thread notes clock syncs and
// crashed processes. All records stay in the buffer, so that none is lost if the recorder
// dies.
#pragma once

#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "src/recorder/buffer/buffer.hpp"
#include "src/recorder/drain/collector_thread.hpp"
#include "src/recorder/drain/cpu_blocks.hpp"
#include "src/recorder/drain/recorder.hpp"
#include "src/recorder/file/file_ring.hpp"
#include "src/recorder/file/trace_file.hpp"
#include "src/recorder/snapshot/snapshot.hpp"

namespace arctrace::recorder {

struct FlightOptions {
  RecorderFacts recorder;
  std::string output;  // snapshots are output.1, output.2 ...
  std::function<void(const std::string&)>
      print;  // prints a line to the user; may be null
  FileLimits snapshots_kept = {};
  uint64_t every_ns = 0;  // the interval of periodic snapshots; 0: none
  // The least time between snapshots that programs ask for; earlier requests are refused,
  // and counted. 0: all are carried out.
  uint64_t asked_interval_ns = 0;
  bool on_crash = false;           // a snapshot when a process ends without an exit
  PolledWriter* polled = nullptr;  // polled in each pass; must outlive the recorder
  CollectorThread runs = {};       // the recorder's thread
};

class FlightRecorder : public Recorder {
 public:
  // `file` receives the buffer's contents at the end. REQUIRES: the caller holds the
  // CollectorLock for as long as this object lives.
  FlightRecorder(Buffer& buffer, TraceFile file, FlightOptions options);
  ~FlightRecorder() override;

  absl::Status publish() override;
  void command_started(uint32_t pid, uint64_t from_ticks, uint64_t to_ticks) override;
  void child_ended(uint32_t pid, int wait_status) override;
  void clock_word_moved(const ClockWordTimes& times) override;
  void threads_joined(JoinedThreads joined) override;
  absl::StatusOr<std::string> snapshot() override;
  CollectorSummary finish() override;
  int write_symbols(std::span<const std::vector<std::byte>> payloads) override;

 private:
  void run();
  void maintain_buffer();
  void take_due_snapshots();
  void take_and_report();
  absl::StatusOr<std::string> snapshot_locked();
  bool has_end(uint32_t process) const;
  std::vector<uint32_t> defined_processes() const;
  bool see_crash();
  void note_clocks();
  void note_control_events();
  void note(RecordBuilder& records);

  Buffer& buffer_;
  TraceFile file_;
  const FlightOptions options_;
  std::mutex mutex_;  // guards all members below, and file_
  bool stopping_ = false;
  SnapshotPast past_;  // a bounded number of clock syncs and records
  std::vector<JoinedThreads> joined_;
  std::vector<uint32_t> gone_;  // processes that were gone at the last check; sorted
  bool crash_seen_ = false;
  uint32_t asked_seen_ = 0;  // the control.snapshots_asked that was last seen
  uint64_t asked_for_ns_ =
      0;  // when the snapshot that a program asked for is due; 0: none
  uint64_t last_asked_ns_ = 0;  // when such a snapshot was taken last; 0: never
  uint64_t asked_taken_ = 0;    // snapshots
  uint64_t asked_refused_ = 0;  // refused requests
  uint64_t last_periodic_ns_ = 0;
  RetainedFiles snapshots_;
  CpuServer cpu_server_;
  std::thread thread_;
};

}  // namespace arctrace::recorder
