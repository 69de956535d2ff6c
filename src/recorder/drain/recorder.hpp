// The interface through which the recording commands turn a buffer into files: Collector
// drains the buffer, FlightRecorder takes snapshots of it.
#pragma once

#include <absl/status/statusor.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "src/recorder/drain/drain.hpp"
#include "src/recorder/file/file_counts.hpp"
#include "src/recorder/file/joined_threads.hpp"

namespace arctrace {

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
  RemovedFiles removed;        // how many existed; their records are among `totals`
  // Of the flight recorder: snapshots that programs asked for, and requests that came too
  // early after one, or with another.
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
  // these two times of the session's clock; and that a child of the recorder ended.
  virtual void command_started(uint32_t pid, uint64_t from_ticks, uint64_t to_ticks) = 0;
  virtual void child_ended(uint32_t pid, int wait_status) = 0;

  // Has finish() record the threads of a process that was joined and that made no call.
  virtual void threads_joined(JoinedThreads joined) = 0;

  // Writes what the buffer holds now into a file of its own, and returns the file's name.
  // kFailedPrecondition: this recorder keeps no records in the buffer.
  virtual absl::StatusOr<std::string> snapshot() = 0;

  // Switches recording off, writes what is left and ends the file. To be called once.
  virtual CollectorSummary finish() = 0;

  // After finish(): appends SYMBOLS chunks to the file (TraceFile::write_symbols()).
  virtual int write_symbols(std::span<const std::vector<std::byte>> payloads) = 0;
};

}  // namespace arctrace
