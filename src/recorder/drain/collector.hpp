// The collector's thread: rounds of draining, woken by the high-water mark, with clock
// syncs at the start, each second and at the end.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "src/recorder/buffer/buffer.hpp"
#include "src/recorder/drain/drain.hpp"
#include "src/recorder/drain/polled_writer.hpp"
#include "src/recorder/drain/recorder.hpp"
#include "src/recorder/file/file_ring.hpp"
#include "src/recorder/file/trace_file.hpp"
#include "src/recorder/jit/code_files.hpp"

namespace arctrace {

class Collector : public Recorder {
 public:
  // Writes the file's header and first records and starts the thread. REQUIRES: the
  // caller has the CollectorSeat for as long.
  // `command_line`: the recorder's own, for the SYSTEM record. `resumed`: the session may
  // have had other collectors. `limits`: with `bytes`, the recording is cut into files
  // (FileRing). REQUIRES: then `file` is a regular one. `polled`: to be called, or null;
  // it must outlive this.
  Collector(Buffer& buffer, TraceFile file, const std::vector<std::string>& command_line,
            bool resumed = false, FileLimits limits = {}, PolledWriter* polled = nullptr);
  ~Collector() override;

  absl::Status publish() override;
  void child_ended(uint32_t pid, int wait_status) override;
  absl::StatusOr<std::string> snapshot() override;

  // What the file holds and what was lost up to now: for progress lines.
  CollectorSummary progress() const;

  CollectorSummary finish() override;

 private:
  void run();
  void sync_clocks();
  CollectorSummary summary_locked() const;

  Buffer& buffer_;
  TraceFile file_;
  mutable std::mutex mutex_;        // of all below, and of file_
  std::unique_ptr<FileRing> ring_;  // null: one file
  PolledWriter* const polled_;
  CodeFiles code_files_;
  Drain drain_;
  bool has_name_ =
      false;  // publish() was called: before, nothing is taken out of the buffer
  bool stopping_ = false;
  uint64_t last_sync_ns_ = 0;
  std::thread thread_;
};

}  // namespace arctrace
