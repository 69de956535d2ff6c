// A recording from its beginning to its end: the buffer, the writer of the kernel's
// records, the recorder that collects the records into a file, the programs that are
// recorded, and the order in which all of these begin and end.
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

#include "src/recorder/drain/clock_keeper.hpp"
#include "src/recorder/drain/collector.hpp"
#include "src/recorder/drain/recorder.hpp"
#include "src/recording/child_process.hpp"
#include "src/recording/events.hpp"
#include "src/recording/join_processes.hpp"
#include "src/recording/options.hpp"
#include "src/recording/recording_buffer.hpp"

namespace arctrace::recording {

// How a session that another process has made is taken over.
struct AdoptOptions {
  std::string definitions;  // an earlier collector's file; empty: none
  recorder::PinPolicy pin = recorder::PinPolicy::kAuto;
};

// A recording. Its functions are for one thread. It prints nothing. The caller has a
// SignalScope as long as this object lives, so that no signal ends the process before its
// buffer is removed.
class Recording {
 public:
  // kIntoFile: options.output gets the records. kNot: the buffer is a ring that nobody
  // drains; `live` and others read it.
  enum class Collecting : uint8_t { kIntoFile, kNot };

  // Makes a buffer of its own, which is removed with this object, and the kernel's writer
  // and the recorder for it. Nothing is recorded yet. options.flight.recorder:
  // recorder_facts(), if there is to be a file. `events` must outlive this object. Error:
  // the shim is missing, there is no space for the buffer, required records of the kernel
  // can't be had, or the output can't be created.
  static absl::StatusOr<std::unique_ptr<Recording>> create(RecordOptions options,
                                                           Collecting collecting,
                                                           Events& events);

  // Becomes the collector of options.session. The session goes on when this ends. Error:
  // there is no such session, or it has a collector; or one of create()'s.
  static absl::StatusOr<std::unique_ptr<Recording>> adopt(RecordOptions options,
                                                          const AdoptOptions& how,
                                                          Events& events);

  Recording(const Recording&) = delete;
  Recording& operator=(const Recording&) = delete;
  // Without finish() there is no file.
  ~Recording();

  const recorder::Buffer& buffer() const { return buffer_.buffer; }
  const RecordOptions& options() const { return options_; }

  // Opens the gate but for options.off, and starts options.command (child_process.hpp),
  // with its output as `output_to_error` says. The file gets its name when the program
  // runs; is_published() says whether it did. Error: the filter is not valid, or the
  // program can't be started (exit_status_of()).
  absl::Status start(bool output_to_error, const SignalScope& signals);
  // Opens the gate, except for options.off, if this object made the buffer, and has
  // options.pids join. Without pids an adopted session has its file from then on.
  // Aborted: none joined; `events` was told why of each.
  absl::Status join();

  // REQUIRES: start() succeeded.
  ChildProcess& child() { return *child_; }
  bool has_child() const { return child_.has_value(); }
  // The processes of options.pids that have joined.
  const std::vector<pid_t>& joined() const { return joined_.pids; }
  // Whether these have children that are not recorded; `events` was told which.
  bool leaves_children() const { return joined_.leaves_children; }
  // Whether the file has its name.
  bool is_published() const { return is_published_; }

  // Waits for the command's end, passes signals on to it, and returns its wait status, or
  // -1 if the user wants to wait no longer. When options.duration_ns are over, the
  // recording is finished, and `at_end` called; the command goes on. With
  // options.wait_for_all also waits for all its descendants. SIGUSR2 takes a snapshot.
  // REQUIRES: there is a collector.
  int wait_for_command(const SignalScope& signals, const std::function<void()>& at_end);
  // Waits for a signal that ends the recording, until options.duration_ns are over, until
  // all processes that joined have ended, or until an adopted session is destroyed.
  // SIGUSR2 takes a snapshot. REQUIRES: there is a collector.
  void wait(const SignalScope& signals);

  // How the recorded programs have ended.
  struct End {
    int wait_status = 0;          // the command's; of processes that were joined: 0
    bool is_interrupted = false;  // the programs go on, but this process is asked to end
  };
  // Waits that long for the end of the command, to which signals are passed on, or of all
  // processes that joined. nullopt: it has not come.
  std::optional<End> wait_for_end(const SignalScope& signals, uint64_t timeout_ns);

  // To be called often if there is no collector: writes the kernel's records, where the
  // recorder has to do that.
  void poll();
  // Nothing is recorded from now on. The kernel's programs stop before a collector takes
  // back their blocks.
  void close();
  // Closes, and ends the file. To be called once. REQUIRES: there is a collector.
  const recorder::CollectorSummary& finish(const SignalScope& signals);
  bool is_finished() const { return summary_.has_value(); }
  // REQUIRES: is_finished().
  const recorder::CollectorSummary& summary() const { return *summary_; }

 private:
  Recording(RecordingBuffer buffer, RecordOptions options, bool is_adopted,
            Events& events);
  absl::Status make_recorder(recorder::ResumedSession resumed);
  absl::Status open();
  absl::Status publish();
  void take_snapshot();
  void keep_unsaved();
  void count_living();
  bool is_over();

  Events& events_;
  RecordOptions options_;
  RecordingBuffer buffer_;
  const recorder::CollectorLock lock_;
  const bool is_adopted_;
  std::unique_ptr<recorder::ClockKeeper> clock_;  // null: the session has no clock word
  std::unique_ptr<recorder::Recorder> recorder_;
  std::optional<ChildProcess> child_;
  JoinedProcesses joined_;
  std::vector<ProcessThreads> threads_;  // of options.pids
  std::optional<recorder::CollectorSummary> summary_;
  bool is_published_ = true;
  bool is_open_ = true;
};

// The facts about this recorder that the file has. May run programs for 0.1 s, to measure
// what recording costs: so it is to be called before the kernel is recorded, which would
// record them. REQUIRES: this process is the command arctrace, which they run in turn for
// -P.
recorder::RecorderFacts recorder_facts();

// Whether the file lacks its end. One for which the disk had no space is complete, except
// for records that it counts as lost.
bool is_cut_off(const recorder::CollectorSummary& summary);

}  // namespace arctrace::recording
