// The screen of `arctrace live`, from its first picture to the moment the user leaves.
#pragma once

#include <absl/status/statusor.h>

#include <memory>
#include <optional>
#include <string>

#include "reader/cli/record/watched_session.hpp"
#include "reader/terminal/screen.hpp"
#include "src/recording/child_process.hpp"
#include "src/recording/recording.hpp"

namespace arctrace::cli {

// Keeps what a command writes while a screen is there.
class KeptOutput {
 public:
  KeptOutput() = default;
  KeptOutput(const KeptOutput&) = delete;
  KeptOutput& operator=(const KeptOutput&) = delete;
  // From here to restore(), a command that is started reads nothing, and what it writes
  // to standard error is kept.
  void redirect();
  void restore();
  // Writes what was kept to standard error.
  ~KeptOutput();

 private:
  int input_ = -1, error_ = -1;  // the streams as they were
  int kept_ = -1;                // a file without a name
};

// Error: standard output is no terminal that can show a screen.
absl::StatusOr<std::unique_ptr<terminal::Screen>> open_live_screen();

// Shows the session until the user leaves: returns 0, or kStatusInterrupted after Ctrl-C.
// `title`: what it is of, escaped.
// `own`: the session is this process', and if what it records ends meanwhile, `ended`
// says how; null: it is another's. Error: the session cannot be read.
absl::StatusOr<int> show_session(terminal::Screen& screen, const std::string& title,
                                 WatchedSession& session, recording::Recording* own,
                                 const recording::SignalScope& signals,
                                 std::optional<recording::Recording::End>& ended);

}  // namespace arctrace::cli
