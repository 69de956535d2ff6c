// arctrace tui: shows a trace in the terminal, to move through.
#include <absl/strings/str_cat.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <csignal>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "reader/analysis/block_times.hpp"
#include "reader/cli/commands/commands.hpp"
#include "reader/cli/commands/replay_setup.hpp"
#include "reader/cli/options/options.hpp"
#include "reader/cli/options/trace_options.hpp"
#include "reader/cli/record/open_trace.hpp"
#include "reader/render/terminal.hpp"
#include "reader/symbols/symbolizer.hpp"
#include "reader/terminal/browser_screen.hpp"
#include "reader/terminal/early_screen.hpp"
#include "reader/terminal/screen.hpp"
#include "reader/trace/text_escape.hpp"
#include "reader/trace/trace.hpp"
#include "reader/trace/trace_files.hpp"
#include "reader/ui/tables/browser.hpp"
#include "reader/ui/tables/trace_reading.hpp"
#include "src/buffer/clock.hpp"
#include "src/recording/child_process.hpp"

namespace arctrace::cli {
namespace {

// The longest time until a signal is noticed.
constexpr int kKeyTimeoutMs = 250;
constexpr uint64_t kProgressEveryNs = 200'000'000;
// Reading so many records takes less than half a second.
constexpr uint64_t kReadAgainAtOnce = 1'000'000;
// This range reads no records: the trace is opened to learn what its index and its
// definitions tell.
constexpr TimeRange kNoTime = {INT64_MIN, INT64_MIN};

bool is_same(const TimeRange& a, const TimeRange& b) {
  return a.from_ns == b.from_ns && a.until_ns == b.until_ns;
}

// "1500000ns~2000000ns"; empty for all of the time.
std::string range_text(const TimeRange& range) {
  if (range.is_all()) return {};
  return absl::StrCat(
      range.from_ns == INT64_MIN ? "" : absl::StrCat(range.from_ns, "ns"), "~",
      range.until_ns == INT64_MAX ? "" : absl::StrCat(range.until_ns, "ns"));
}

// A range of a trace, or all of it: what was read of it, and the part that is shown.
struct Shown {
  // `asked`: the options, with the range.
  Shown(TuiOptions asked, reader::Trace opened, reader::Symbolizer& symbolizer,
        reader::TraceReading::Goes goes)
      : options(std::move(asked)),
        trace(std::move(opened)),
        reading(
            trace, symbolizer, replay_options(options, trace),
            [this](const reader::Gap& gap) {
              return options.wants_gap(trace.definitions(), gap);
            },
            std::move(goes)) {}

  const TuiOptions options;
  reader::Trace trace;
  reader::TraceReading reading;
  // Set once the range was read.
  std::optional<reader::TraceTables> tables;
  std::optional<reader::Browser> browser;
};

// A trace on the screen, until the user leaves.
class TuiRun {
 public:
  // `known`: a trace of `files` that was opened for kNoTime.
  TuiRun(const TuiOptions& options, const reader::TraceFiles& files,
         const reader::Trace& known, terminal::Screen& screen,
         const recording::SignalScope& signals)
      : options_(options),
        files_(files),
        known_(known),
        screen_(screen),
        signals_(signals),
        blocks_(known),
        early_(screen, known, blocks_),
        prompt_(parse_time_range),
        symbolizer_(symbol_options(options.download)),
        wanted_(options.range) {}

  // Error: the trace cannot be read.
  absl::Status run() {
    while (!is_over()) {
      const TimeRange range = wanted_;
      std::unique_ptr<Shown>& shown = is_same(range, options_.range) ? first_ : other_;
      if (shown == nullptr || !is_same(shown->options.range, range)) {
        absl::StatusOr<std::unique_ptr<Shown>> read = read_range(range);
        if (!read.ok()) {
          if (is_over() || !is_same(wanted_, range)) continue;
          return read.status();
        }
        shown = *std::move(read);
      }
      show(*shown);
    }
    return absl::OkStatus();
  }

  // The signal that ended the run; 0: the user left.
  int signal() const { return signal_; }
  // The replay of the range that the options say; null: that was not read to its end.
  const reader::Replay* replay() const {
    return first_ == nullptr ? nullptr : &first_->reading.replay();
  }

 private:
  bool is_over() const { return signal_ != 0 || has_quit_; }

  // kCancelled: the user left, or wants another range.
  absl::StatusOr<std::unique_ptr<Shown>> read_range(const TimeRange& range) {
    TuiOptions asked = options_;
    asked.range = range;
    asked.take_range();
    begin(range, nullptr);
    absl::StatusOr<reader::Trace> trace = files_.trace(
        {.range = asked.filter.read_range()}, [this] { return !goes_on(records_); });
    if (!trace.ok()) return trace.status();
    auto shown =
        std::make_unique<Shown>(std::move(asked), *std::move(trace), symbolizer_,
                                [this](uint64_t records) { return goes_on(records); });
    begin(range, &shown->reading);
    const absl::Status status = shown->reading.read_all();
    reading_ = nullptr;
    if (!status.ok()) return status;
    shown->tables.emplace(shown->reading.facts());
    const std::string text = range_text(range);
    shown->browser.emplace(
        *shown->tables,
        absl::StrCat(reader::escaped(known_.session().path), text.empty() ? "" : " ",
                     text),
        [this, made = shown.get()](reader::FunctionId function) {
          return slowest(*made, function);
        },
        shown->reading.records() <= kReadAgainAtOnce);
    return shown;
  }

  // Notes that a pass over a range begins; `reading` is null while the trace is opened
  // for it.
  void begin(const TimeRange& range, const reader::TraceReading* reading) {
    range_ = range;
    reading_ = reading;
    records_ = 0;
    begin_ns_ = read_monotonic_ns();
    next_ns_ = 0;
  }

  // Shows the range until the user leaves, or wants another range.
  void show(Shown& shown) {
    terminal::BrowserScreen browser(screen_, *shown.browser);
    while (!is_over() && is_same(wanted_, shown.options.range)) {
      browser.draw();
      if (prompt_.is_open()) prompt_.draw(screen_);
      screen_.show();
      const int key = screen_.key(kKeyTimeoutMs);
      if (prompt_.is_open()) {
        take_prompt(key);
      } else if (key == 't' && !shown.browser->is_typing()) {
        prompt_.open();
      } else if (!browser.handle(key)) {
        has_quit_ = true;
      }
      take_signal();
    }
  }

  absl::StatusOr<reader::SlowestOfFunction> slowest(Shown& shown,
                                                    reader::FunctionId function) {
    begin(shown.options.range, &shown.reading);
    is_reading_again_ = true;
    absl::StatusOr<reader::SlowestOfFunction> found = shown.reading.slowest(function);
    is_reading_again_ = false;
    reading_ = nullptr;
    // Ctrl-C has stopped only this pass over the trace, not the run.
    if (!found.ok() && signal_ == SIGINT) signal_ = 0;
    return found;
  }

  // Draws the progress and polls keys and signals while a trace is read.
  bool goes_on(uint64_t records) {
    records_ = records;
    const uint64_t now_ns = read_monotonic_ns();
    if (now_ns >= next_ns_) {
      next_ns_ = now_ns + kProgressEveryNs;
      take_key(screen_.key(0));
      draw_reading(now_ns);
    }
    take_signal();
    return !is_over() && is_same(wanted_, range_) && !std::exchange(stops_, false);
  }

  void take_key(int key) {
    const bool is_text = !is_reading_again_ && prompt_.is_open();
    const bool ends = key == 'q' && !is_reading_again_ && !is_text;
    if (key == terminal::Screen::kKeyGone || ends) {
      has_quit_ = true;
    } else if (is_reading_again_) {
      stops_ = key == terminal::Screen::kKeyEscape || key == 'q';
    } else if (is_text) {
      take_prompt(key);
    } else if (key == 't') {
      prompt_.open();
    } else {
      early_.handle(key);
    }
  }

  void take_prompt(int key) {
    if (key == terminal::Screen::kKeyGone) has_quit_ = true;
    const std::optional<TimeRange> range = prompt_.handle(key);
    if (!range.has_value()) return;
    wanted_ = *range;
    count_from_end(blocks_.times().until_ns, wanted_);
  }

  // The share of the records of the range that were read before a time.
  double share_before(int64_t time_ns) const {
    const auto all = static_cast<double>(blocks_.bytes_in(range_));
    const TimeRange before{range_.from_ns, std::min(time_ns, range_.until_ns)};
    return static_cast<double>(blocks_.bytes_in(before)) / std::max(1.0, all);
  }

  void draw_reading(uint64_t now_ns) {
    if (!is_reading_again_) early_.draw();
    if (prompt_.is_open()) {
      prompt_.draw(screen_);
    } else {
      const double share = reading_ == nullptr ? 0 : share_before(reading_->time_ns());
      terminal::draw_progress(screen_, records_, share,
                              static_cast<double>(now_ns - begin_ns_) * 1e-9,
                              is_reading_again_ ? "Esc stops" : "t time range, q leaves");
    }
    screen_.show();
  }

  void take_signal() {
    if (signal_ == 0) signal_ = signals_.take_end();
  }

  const TuiOptions& options_;
  const reader::TraceFiles& files_;
  const reader::Trace& known_;
  terminal::Screen& screen_;
  const recording::SignalScope& signals_;
  const reader::BlockTimes blocks_;
  terminal::EarlyScreen early_;
  terminal::RangePrompt prompt_;
  reader::Symbolizer symbolizer_;
  std::unique_ptr<Shown> first_;  // of the range that the options say
  std::unique_ptr<Shown> other_;  // of the last other one
  TimeRange wanted_;
  TimeRange range_;                                // that is read
  const reader::TraceReading* reading_ = nullptr;  // null: it has not begun
  uint64_t records_ = 0;                           // that were read
  uint64_t begin_ns_ = 0, next_ns_ = 0;
  int signal_ = 0;
  bool has_quit_ = false;
  bool is_reading_again_ = false, stops_ = false;
};

absl::StatusOr<std::unique_ptr<terminal::Screen>> screen_for(const TuiOptions& options) {
  const bool has_color = reader::terminal_style(reader::ColorMode::kAuto, true).color;
  absl::StatusOr<std::unique_ptr<terminal::Screen>> screen =
      terminal::Screen::open(has_color);
  if (screen.ok()) return screen;
  return absl::FailedPreconditionError(
      absl::StrCat("tui: ", std::string(screen.status().message()), "; arctrace report ",
                   options.paths.front(), " prints what it would show"));
}

absl::StatusOr<int> run_tui(const TuiOptions& options) {
  const std::vector<std::string> paths = files_or_sessions(options.paths);
  const absl::StatusOr<OpenFiles> open =
      open_files_with_abandoned_buffer(paths, {.range = kNoTime}, [] { return false; });
  if (!open.ok()) return open.status();
  const reader::Trace& known = open->trace;
  // For a file that was cut off, the status line says so instead.
  if (absl::Status s = check_whole(known.session(), options.paths.front(),
                                   options.partial || !known.session().raw, "shows");
      !s.ok()) {
    return s;
  }
  const std::unique_ptr<recorder::ActingWithRights> rights = act_as_owner(paths.front());
  int signal = 0;
  {
    const recording::SignalScope signals;
    absl::StatusOr<std::unique_ptr<terminal::Screen>> screen = screen_for(options);
    if (!screen.ok()) return screen.status();
    TuiRun run(options, open->files, known, **screen, signals);
    const absl::Status status = run.run();
    screen->reset();
    if (!status.ok()) return status;
    if (run.replay() != nullptr) warn_of_empty_replay(options, *run.replay());
    signal = run.signal();
  }
  if (signal == SIGINT) return kStatusInterrupted;
  return signal == 0 ? 0 : recording::exit_like(signal);
}

}  // namespace

Runner add_tui(CLI::App& root) {
  auto options = std::make_shared<TuiOptions>();
  CLI::App* app =
      root.add_subcommand("tui", "show a trace in the terminal, to move through");
  add_tui_options(*app, *options);
  return [options]() -> absl::StatusOr<int> {
    if (absl::Status s = count_from_end_of(options->paths, options->range); !s.ok()) {
      return s;
    }
    options->take_range();
    return run_tui(*options);
  };
}

}  // namespace arctrace::cli
