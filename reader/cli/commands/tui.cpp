// arctrace tui: shows a trace in the terminal, to move through.
#include <absl/strings/str_cat.h>

#include <csignal>
#include <memory>
#include <string>
#include <vector>

#include "reader/cli/commands/commands.hpp"
#include "reader/cli/commands/empty_replay.hpp"
#include "reader/cli/commands/replay_setup.hpp"
#include "reader/cli/options/options.hpp"
#include "reader/cli/options/tui_options.hpp"
#include "reader/cli/record/child_process.hpp"
#include "reader/cli/record/left_buffer.hpp"
#include "reader/cli/record/trace_owner.hpp"
#include "reader/render/terminal.hpp"
#include "reader/symbols/symbolizer.hpp"
#include "reader/terminal/browser_screen.hpp"
#include "reader/terminal/screen.hpp"
#include "reader/trace/text_escape.hpp"
#include "reader/trace/trace.hpp"
#include "reader/ui/tables/browser.hpp"
#include "reader/ui/tables/trace_reading.hpp"
#include "src/buffer/clock.hpp"
#include "src/recorder/buffer/session_directory.hpp"

namespace arctrace::cli {
namespace {

// How soon a signal is seen.
constexpr int kKeyTimeoutMs = 250;
constexpr uint64_t kProgressEveryNs = 200'000'000;
// Reading so many records takes less than half a second.
constexpr uint64_t kReadAgainAtOnce = 1'000'000;

// A trace on the screen, from its first record to the moment the user leaves.
class TuiRun {
 public:
  TuiRun(const TuiOptions& options, reader::Trace& trace, terminal::Screen& screen,
         const SignalScope& signals)
      : trace_(trace),
        screen_(screen),
        signals_(signals),
        symbolizer_(symbol_options(options.download)),
        reading_(
            trace, symbolizer_, replay_options(options, trace),
            [&](const reader::Gap& gap) {
              return options.wants_gap(trace.definitions(), gap);
            },
            [this](uint64_t records) { return goes_on(records); }) {}

  // Error: the trace cannot be read.
  absl::Status run() {
    if (absl::Status s = reading_.read_all(); !s.ok()) {
      return signal_ != 0 || has_left_ ? absl::OkStatus() : s;
    }
    reader::TraceTables tables(reading_.facts());
    reader::Browser browser(
        tables, reader::escaped(trace_.session().path),
        [this](reader::FunctionId function) { return slowest(function); },
        reading_.records() <= kReadAgainAtOnce);
    terminal::BrowserScreen shown(screen_, browser);
    while (signal_ == 0 && !has_left_) {
      shown.draw();
      has_left_ = !shown.handle(screen_.key(kKeyTimeoutMs));
      take_signal();
    }
    return absl::OkStatus();
  }

  // That which ended the run; 0: the user left.
  int signal() const { return signal_; }
  const reader::Replay& replay() const { return reading_.replay(); }
  // Whether the trace was read to its end.
  bool has_read() const { return reading_.records() != 0; }

 private:
  absl::StatusOr<reader::SlowestOfFunction> slowest(reader::FunctionId function) {
    is_reading_again_ = true;
    absl::StatusOr<reader::SlowestOfFunction> found = reading_.slowest(function);
    is_reading_again_ = false;
    // Ctrl-C has stopped this only.
    if (!found.ok() && signal_ == SIGINT) signal_ = 0;
    return found;
  }

  // What is drawn and looked at while a trace is read.
  bool goes_on(uint64_t records) {
    const uint64_t now_ns = read_monotonic_ns();
    if (now_ns >= next_ns_) {
      next_ns_ = now_ns + kProgressEveryNs;
      terminal::draw_progress(screen_, records, share_read(trace_, records),
                              is_reading_again_ ? "Esc stops" : "q leaves");
      const int key = screen_.key(0);
      if (key == terminal::Screen::kKeyGone) has_left_ = true;
      if (is_reading_again_ && (key == terminal::Screen::kKeyEscape || key == 'q')) {
        return false;
      }
      if (!is_reading_again_ && key == 'q') has_left_ = true;
    }
    take_signal();
    return signal_ == 0 && !has_left_;
  }

  void take_signal() {
    if (signal_ == 0) signal_ = signals_.take_end();
  }

  reader::Trace& trace_;
  terminal::Screen& screen_;
  const SignalScope& signals_;
  reader::Symbolizer symbolizer_;
  reader::TraceReading reading_;
  uint64_t next_ns_ = 0;
  int signal_ = 0;
  bool has_left_ = false;
  bool is_reading_again_ = false;
};

absl::StatusOr<std::unique_ptr<terminal::Screen>> screen_for(const TuiOptions& options) {
  const bool has_color = reader::terminal_style(reader::ColorMode::kAuto, true).color;
  absl::StatusOr<std::unique_ptr<terminal::Screen>> screen =
      terminal::Screen::open(has_color);
  if (screen.ok()) return screen;
  return absl::FailedPreconditionError(
      absl::StrCat("tui: ", std::string(screen.status().message()), "; arctrace report ",
                   options.path, " prints what it would show"));
}

absl::StatusOr<int> run_tui(const TuiOptions& options) {
  const std::string path = file_or_session(options.path);
  absl::StatusOr<reader::Trace> trace = reader::Trace::open(path);
  if (!trace.ok()) return trace.status();
  // Of a file that was cut off, the status line tells.
  if (absl::Status s = check_whole(trace->session(), options.path,
                                   options.partial || !trace->session().raw, "shows");
      !s.ok()) {
    return s;
  }
  const std::unique_ptr<ActingWithRights> rights = act_as_owner(path);
  int signal = 0;
  {
    const SignalScope signals;
    absl::StatusOr<std::unique_ptr<terminal::Screen>> screen = screen_for(options);
    if (!screen.ok()) return screen.status();
    TuiRun run(options, *trace, **screen, signals);
    const absl::Status status = run.run();
    screen->reset();
    if (!status.ok()) return status;
    warn_of_left_buffer(trace->session());
    if (run.has_read()) warn_of_empty_replay(options, run.replay());
    signal = run.signal();
  }
  if (signal == SIGINT) return kStatusInterrupted;
  return signal == 0 ? 0 : exit_like(signal);
}

}  // namespace

Runner add_tui(CLI::App& root) {
  auto options = std::make_shared<TuiOptions>();
  CLI::App* app =
      root.add_subcommand("tui", "show a trace in the terminal, to move through");
  add_tui_options(*app, *options);
  return [options]() -> absl::StatusOr<int> {
    options->take_range();
    return run_tui(*options);
  };
}

}  // namespace arctrace::cli
