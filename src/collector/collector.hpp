// The collector's thread: rounds of draining, woken by the high-water mark, with clock
// syncs at the start, each second and at the end.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "src/collector/buffer.hpp"
#include "src/collector/drain.hpp"
#include "src/collector/trace_file.hpp"

namespace arctrace {

struct CollectorSummary {
  DrainTotals totals;
  std::vector<uint64_t> lost;  // by cause
  uint32_t processes = 0;
  uint32_t threads = 0;
  uint64_t file_bytes = 0;
  int file_error = 0;  // errno: the file ends early
};

class Collector {
 public:
  // Writes the file's header and first records and starts the thread.
  // `command_line`: the recorder's own, for the SYSTEM record.
  Collector(Buffer& buffer, TraceFile file, const std::vector<std::string>& command_line);
  Collector(const Collector&) = delete;
  Collector& operator=(const Collector&) = delete;
  ~Collector();

  // The recorded program runs: the trace file gets its name (TraceFile::publish()).
  absl::Status publish();

  // A child of the recorder ended: said in the file.
  void child_ended(uint32_t pid, int wait_status);

  // What the file holds and what was lost up to now: for progress lines.
  CollectorSummary progress() const;

  // Switches recording off, drains what is left, ends the file. Called once.
  CollectorSummary finish();

 private:
  void run();
  void wait_for_work();
  void say_clock_sync();
  void say_start(const std::vector<std::string>& command_line);
  CollectorSummary summary_locked() const;

  Buffer& buffer_;
  TraceFile file_;
  mutable std::mutex mutex_;  // of all below, and of file_
  Drain drain_;
  bool stopping_ = false;
  uint64_t last_sync_ns_ = 0;
  std::thread thread_;
};

}  // namespace arctrace
