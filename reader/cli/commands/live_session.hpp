// How `arctrace live` shows a session, as lines or on a screen, and runs one of its own.
#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "reader/cli/options/dump_filter.hpp"
#include "reader/cli/options/options.hpp"
#include "reader/cli/record/watched_session.hpp"
#include "reader/live/live_reader.hpp"
#include "reader/render/dump_printer.hpp"
#include "reader/render/output.hpp"
#include "reader/streams/record_describer.hpp"
#include "reader/terminal/screen.hpp"
#include "reader/trace/event_fields.hpp"
#include "src/recording/child_process.hpp"
#include "src/recording/recording.hpp"

namespace arctrace::cli {

// The longest time until a record appears, beside the time that it takes to read.
inline constexpr uint64_t kLiveTickNs = 100'000'000;

// Prints a warning if blocks were missed.
void print_missed(uint64_t missed_blocks);

// The records of a live session as lines, each as `arctrace dump` prints it.
class LiveLines : public reader::LiveTick {
 public:
  // `options` and `output` must outlive this object.
  LiveLines(const LiveOptions& options, reader::Output& output)
      : format_(options.format),
        filter_(options.filter),
        events_(options.where),
        output_(output) {}

  reader::ReplayListener* call_listener() override { return &listener_; }
  void begin(const reader::Trace& trace, reader::Replay& replay) override;
  void before(const reader::Record& record) override;
  void after(const reader::Record& record) override;
  void end(const reader::Trace& trace, reader::Replay& replay, int64_t from_ns,
           int64_t until_ns, const std::vector<reader::LiveThread>& threads) override;
  // Prints what --where excluded, and which of its conditions no event could meet. To be
  // called after the last tick.
  void finish();

 private:
  const OutputFormat format_;
  const DumpFilter& filter_;
  reader::EventFilter events_;
  // What is wrong with the conditions, as far as events were defined by the last tick;
  // empty once nothing was.
  std::optional<std::string> problem_;
  int64_t last_ns_ = 0;  // of the last record
  reader::Output& output_;
  reader::EffectListener listener_;
  // The following are of the current tick.
  const reader::Definitions* definitions_ = nullptr;
  std::unique_ptr<reader::RecordDescriber> describer_;
  std::unique_ptr<reader::DumpPrinter> printer_;
};

// Saves what a command writes while a screen is shown.
class DeferredOutput {
 public:
  DeferredOutput() = default;
  DeferredOutput(const DeferredOutput&) = delete;
  DeferredOutput& operator=(const DeferredOutput&) = delete;
  // From here to restore(), a command that is started reads nothing, and what it writes
  // to standard error is saved.
  void redirect();
  void restore();
  // Writes what was saved to standard error.
  ~DeferredOutput();

 private:
  int input_ = -1, error_ = -1;  // the streams as they were
  int deferred_ = -1;            // a file without a name
};

// Error: standard output is no terminal that can show a screen.
absl::StatusOr<std::unique_ptr<terminal::Screen>> open_live_screen();

// Shows the session until the user leaves: returns 0, or kStatusInterrupted after Ctrl-C.
// `title`: what the screen shows, escaped. `own`: the recording if the session is this
// process'; if it ends meanwhile, `ended` says how. Null: the session is another
// process'. `full_names`: functions have their whole names. Error: the session cannot be
// read.
absl::StatusOr<int> show_session(terminal::Screen& screen, const std::string& title,
                                 bool full_names, WatchedSession& session,
                                 recording::Recording* own,
                                 const recording::SignalScope& signals,
                                 std::optional<recording::Recording::End>& ended);

// Runs `arctrace live` with a session of its own: of a command, or of processes that run
// already. Starts options.record.command, or if that is empty joins options.record.pids,
// and shows what they record: lines or the screen, as options.plain says. Returns the
// exit status: the command's; for joined processes 0 once the user has left or they have
// ended, and kStatusInterrupted after Ctrl-C. Error: nothing is recorded.
absl::StatusOr<int> live_own(const LiveOptions& options);

}  // namespace arctrace::cli
