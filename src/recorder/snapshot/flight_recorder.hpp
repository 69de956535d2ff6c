// The recorder of overwrite mode. Nothing is written while recording but snapshots that
// somebody asks for; at the end, what the buffer holds then. Its thread notes the clocks
// and who died. All else stays in the buffer, so that no recorder's death costs it.
#pragma once

#include <cstdint>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "src/recorder/buffer/buffer.hpp"
#include "src/recorder/drain/polled_writer.hpp"
#include "src/recorder/drain/recorder.hpp"
#include "src/recorder/file/kept_files.hpp"
#include "src/recorder/file/trace_file.hpp"
#include "src/recorder/snapshot/snapshot.hpp"

namespace arctrace {

struct FlightOptions {
  std::vector<std::string> command_line;  // the recorder's own
  std::string output;                     // snapshots are output.1, output.2 ...
  FileLimits snapshots_kept = {};
  uint64_t every_ns = 0;           // a snapshot each time so much has passed; 0: none
  bool on_crash = false;           // one when a process ends without an exit
  PolledWriter* polled = nullptr;  // to be called, or null; must outlive the recorder
};

class FlightRecorder : public Recorder {
 public:
  // `file`: for what the buffer holds at the end. REQUIRES: the caller has the
  // CollectorSeat for as long.
  FlightRecorder(Buffer& buffer, TraceFile file, FlightOptions options);
  ~FlightRecorder() override;

  absl::Status publish() override;
  void child_ended(uint32_t pid, int wait_status) override;
  absl::StatusOr<std::string> snapshot() override;
  CollectorSummary finish() override;

 private:
  void run();
  void look_after_buffer();
  void take_due_snapshots();
  void take_and_say();
  absl::StatusOr<std::string> snapshot_locked();
  bool has_end(uint32_t process) const;
  std::vector<uint32_t> defined_processes() const;
  bool see_crash();
  void note_clocks();

  Buffer& buffer_;
  TraceFile file_;
  const FlightOptions options_;
  std::mutex mutex_;  // of all below, and of file_
  bool stopping_ = false;
  SnapshotPast past_;           // clocks, a bounded number, and the command's end
  std::vector<uint32_t> gone_;  // processes, when we last looked; sorted
  bool crash_seen_ = false;
  uint32_t asked_seen_ = 0;    // control.snapshots_asked that was heeded
  uint64_t asked_for_ns_ = 0;  // when a snapshot that a program asked for is due; 0
  uint64_t last_periodic_ns_ = 0;
  KeptFiles snapshots_;
  std::thread thread_;
};

}  // namespace arctrace
