// The recorder of overwrite mode. Nothing is written while recording but snapshots that
// somebody asks for; at the end, what the buffer holds then. Its thread settles the dead
// and notes the clocks.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "src/collector/buffer.hpp"
#include "src/collector/clock_source.hpp"
#include "src/collector/recorder.hpp"
#include "src/collector/trace_file.hpp"

namespace arctrace {

struct FlightOptions {
  std::vector<std::string> command_line;  // the recorder's own
  std::string output;                     // snapshots are output.1, output.2 ...
};

class FlightRecorder : public Recorder {
 public:
  // `file`: for what the buffer holds at the end.
  FlightRecorder(Buffer& buffer, TraceFile file, FlightOptions options);
  ~FlightRecorder() override;

  absl::Status publish() override;
  void child_ended(uint32_t pid, int wait_status) override;
  absl::StatusOr<std::string> snapshot() override;
  CollectorSummary finish() override;

 private:
  void run();
  void look_after_buffer();
  void note_clocks();
  void remember(RecordBuilder& said);
  DrainTotals write(TraceFile& file);

  Buffer& buffer_;
  TraceFile file_;
  const FlightOptions options_;
  std::mutex mutex_;  // of all below, and of file_
  std::condition_variable stop_;
  bool stopping_ = false;
  std::vector<ClockSync> syncs_;
  // What was said of the dead and of the command, the oldest first; bounded.
  std::deque<std::vector<std::byte>> past_;
  uint64_t past_bytes_ = 0;
  uint32_t snapshots_ = 0;  // written
  std::thread thread_;
};

}  // namespace arctrace
