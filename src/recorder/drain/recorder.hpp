// What the recording command asks of whoever turns the buffer into files: the collector,
// which drains it, or the flight recorder, which takes snapshots.
#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "src/recorder/drain/drain.hpp"

namespace arctrace {

struct CollectorSummary {
  DrainTotals totals;
  std::vector<uint64_t> lost;  // by cause
  uint64_t overwritten = 0;    // records
  uint32_t processes = 0;
  uint32_t threads = 0;
  uint64_t file_bytes = 0;
  uint64_t earlier_files = 0;  // FILE.1, FILE.2 ... that are there (FileRing)
  int file_error = 0;          // errno: the file ends early
};

class Recorder {
 public:
  Recorder() = default;
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;
  virtual ~Recorder() = default;

  // The recorded program runs: the trace file gets its name (TraceFile::publish()). Not
  // before is anything drained into it: if we are killed, it must be found.
  virtual absl::Status publish() = 0;

  // A child of the recorder ended: said in the file.
  virtual void child_ended(uint32_t pid, int wait_status) = 0;

  // Writes what the buffer holds now into a file of its own, and returns its name.
  // kFailedPrecondition: this recorder keeps nothing in the buffer to write.
  virtual absl::StatusOr<std::string> snapshot() = 0;

  // Switches recording off, writes what is left, ends the file. Called once.
  virtual CollectorSummary finish() = 0;
};

}  // namespace arctrace
