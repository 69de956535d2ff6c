// A recording from its beginning to its end: the buffer, what writes the kernel's records
// into it, what collects it into a file, the programs whose records are wanted, and the
// order in which all of these begin and end.
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>
#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "src/recorder/drain/collector.hpp"
#include "src/recorder/drain/collector_lock.hpp"
#include "src/recorder/drain/recorder.hpp"
#include "src/recording/child_process.hpp"
#include "src/recording/events.hpp"
#include "src/recording/options.hpp"
#include "src/recording/process_threads.hpp"
#include "src/recording/recording_buffer.hpp"

namespace arctrace::recording {

// How a session that others have made is taken over.
struct AdoptOptions {
  std::string definitions;  // an earlier collector's file; empty: none
  PinPolicy pin = PinPolicy::kAuto;
};

// Its functions are for one thread. It prints nothing. The caller has a SignalScope as
// long as this object lives, so that no signal ends the process before its buffer is
// removed.
class Recording {
 public:
  // kIntoFile: options.output gets the records. kNot: the buffer is a ring that nobody
  // drains, for who looks at it.
  enum class Collecting : uint8_t { kIntoFile, kNot };

  // Makes a buffer of its own, which is removed with this object, and all that writes
  // into it or collects it. Nothing is recorded yet. options.flight.recorder:
  // recorder_facts(), if there is to be a file. `events` must outlive this object. Error:
  // the shim is missing, there is no room for the buffer, what was required of the
  // kernel's records can't be had, or the output can't be created.
  static absl::StatusOr<std::unique_ptr<Recording>> create(RecordOptions options,
                                                           Collecting collecting,
                                                           Events& events);

  // Becomes the collector of options.session. The session goes on when this ends. Error:
  // there is no such session, or it has a collector; and as above.
  static absl::StatusOr<std::unique_ptr<Recording>> adopt(RecordOptions options,
                                                          const AdoptOptions& how,
                                                          Events& events);

  Recording(const Recording&) = delete;
  Recording& operator=(const Recording&) = delete;
  // Without finish() there is no file.
  ~Recording();

  const Buffer& buffer() const { return buffer_.buffer; }
  const RecordOptions& options() const { return options_; }

  // Opens the gate but for options.off, and starts options.command (child_process.hpp),
  // with its output as `output_to_error` says. The file gets its name when the program
  // runs; is_published() says whether it did. Error: the filter is none, or the program
  // can't be started (exit_status_of()).
  absl::Status start(bool output_to_error, const SignalScope& signals);
  // Opens the gate but for options.off if this made the buffer, and has options.pids
  // join. Without pids an adopted session has its file from then on. Aborted: none did,
  // and `events` has heard why of each.
  absl::Status join();

  // REQUIRES: start() succeeded.
  ChildProcess& child() { return *child_; }
  bool has_child() const { return child_.has_value(); }
  // Those of options.pids that have joined.
  const std::vector<pid_t>& joined() const { return joined_; }
  // Whether the file has its name.
  bool is_published() const { return is_published_; }

  // Waits for the command's end, passes signals on to it, and returns its wait status, or
  // -1 if the user wants to wait no longer. When options.duration_ns are over, the
  // recording is finished, and `at_end` called; the command goes on. With
  // options.wait_for_all also waits for all its descendants. SIGUSR2 takes a snapshot.
  // REQUIRES: something is collected.
  int wait_for_command(const SignalScope& signals, const std::function<void()>& at_end);
  // Waits for a signal that ends the recording, until options.duration_ns are over, or
  // until all that has joined has ended, or an adopted session is destroyed. SIGUSR2
  // takes a snapshot. REQUIRES: something is collected.
  void wait(const SignalScope& signals);

  // How what is recorded has ended.
  struct End {
    int wait_status = 0;          // the command's; of processes that were joined: 0
    bool is_interrupted = false;  // those go on, but this process is asked to end
  };
  // Waits that long for the end of the command, to which signals are passed on, or of all
  // processes that were joined. nullopt: it has not come.
  std::optional<End> wait_for_end(const SignalScope& signals, uint64_t timeout_ns);

  // To be called often where nothing is collected: has the kernel's records written,
  // where that takes our help.
  void poll();
  // Nothing is recorded from now on. The kernel's programs stop before a collector takes
  // back their blocks.
  void close();
  // Closes, and ends the file. To be called once. REQUIRES: something is collected.
  const CollectorSummary& finish(const SignalScope& signals);
  bool is_finished() const { return summary_.has_value(); }
  // REQUIRES: is_finished().
  const CollectorSummary& summary() const { return *summary_; }

 private:
  Recording(RecordingBuffer buffer, RecordOptions options, bool is_adopted,
            Events& events);
  absl::Status make_recorder(ResumedSession resumed);
  absl::Status open();
  absl::Status publish();
  void take_snapshot();
  void keep_unsaved();
  void count_living();
  bool is_over();

  Events& events_;
  RecordOptions options_;
  RecordingBuffer buffer_;
  const CollectorLock lock_;
  const bool is_adopted_;
  std::unique_ptr<Recorder> recorder_;
  std::optional<ChildProcess> child_;
  std::vector<pid_t> joined_;
  std::vector<ProcessThreads> threads_;  // of options.pids
  std::optional<CollectorSummary> summary_;
  bool is_published_ = true;
  bool is_open_ = true;
};

// What the file is to say of this recorder. May run programs for 0.1 s, to learn what
// recording costs: to be called before the kernel is recorded, which would see them.
// REQUIRES: this process is the command arctrace, which they run in turn for -P.
RecorderFacts recorder_facts();

// Whether the file lacks its end. One for which the disk had no room is whole, except for
// records that it counts as lost.
bool is_cut_off(const CollectorSummary& summary);

}  // namespace arctrace::recording
