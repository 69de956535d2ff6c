// The recorder of drop and stop mode. Its thread drains the buffer into a trace file,
// pass by pass, woken by the high-water mark, and writes clock syncs at the start, at
// intervals and at the end.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "src/recorder/buffer/buffer.hpp"
#include "src/recorder/drain/collector_thread.hpp"
#include "src/recorder/drain/drain.hpp"
#include "src/recorder/drain/recorder.hpp"
#include "src/recorder/file/earlier_definitions.hpp"
#include "src/recorder/file/file_ring.hpp"
#include "src/recorder/file/session_records.hpp"
#include "src/recorder/file/trace_file.hpp"
#include "src/recorder/jit/code_files.hpp"

namespace arctrace::recorder {

// Facts for a collector that takes the place of another one.
struct ResumedSession {
  bool is_resumed = false;                     // there may have been another one
  std::vector<EarlierChunk> definitions = {};  // their blocks, from its file
};

class Collector : public Recorder {
 public:
  // Writes the file's header and first records and starts the thread. REQUIRES: the
  // caller holds the CollectorLock for as long as this object lives. `limits`: if `bytes`
  // is set, the recording is cut into files (FileRing), and `file` must be a regular
  // file. `polled`: a writer to be polled in each pass, or null; it must outlive this
  // object.
  Collector(Buffer& buffer, TraceFile file, const RecorderFacts& recorder,
            const ResumedSession& resumed = {}, FileLimits limits = {},
            PolledWriter* polled = nullptr, const CollectorThread& runs = {});
  ~Collector() override;

  absl::Status publish() override;
  void command_started(uint32_t pid, uint64_t from_ticks, uint64_t to_ticks) override;
  void child_ended(uint32_t pid, int wait_status) override;
  void clock_word_moved(const ClockWordTimes& times) override;
  void threads_joined(JoinedThreads joined) override;
  absl::StatusOr<std::string> snapshot() override;

  // What the file has and what was lost so far, for progress lines.
  CollectorSummary progress() const;

  CollectorSummary finish() override;
  int write_symbols(std::span<const std::vector<std::byte>> payloads) override;

 private:
  void run();
  void sync_clocks();
  void write_control_events();
  void flush_records();
  void write_earlier(const std::vector<EarlierChunk>& definitions);
  CollectorSummary summary_locked() const;

  Buffer& buffer_;
  TraceFile file_;
  mutable std::mutex mutex_;        // guards all members below, and file_
  std::unique_ptr<FileRing> ring_;  // null: the recording is one file
  PolledWriter* const polled_;
  const CollectorThread runs_;
  CodeFiles code_files_;
  Drain drain_;
  // Whether publish() was called. Before that nothing is taken out of the buffer.
  bool has_name_ = false;
  bool stopping_ = false;
  uint64_t last_sync_ns_ = 0;    // of the clocks
  const uint64_t disk_sync_ns_;  // 0: only at the end
  uint64_t last_disk_sync_ns_ = 0;
  RecordBuilder records_;  // the collector's own, for which there was no space yet
  ControlEventsSeen control_events_;  // control events that were added to records_
  std::vector<JoinedThreads> joined_;
  std::thread thread_;
};

}  // namespace arctrace::recorder
