// arctrace report: shows call stacks and the time spent in them, in one of the views of
// reader/report/.
#include <absl/strings/str_cat.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <optional>
#include <string>

#include "reader/cli/commands/commands.hpp"
#include "reader/cli/options/report_options.hpp"
#include "reader/cli/record/left_buffer.hpp"
#include "reader/cli/record/trace_owner.hpp"
#include "reader/render/gap_list.hpp"
#include "reader/render/output.hpp"
#include "reader/render/record_describer.hpp"
#include "reader/render/terminal.hpp"
#include "reader/replay/replay.hpp"
#include "reader/report/report_summary.hpp"
#include "reader/symbols/symbolizer.hpp"
#include "reader/trace/gaps.hpp"
#include "reader/trace/trace.hpp"
#include "src/recorder/buffer/session_directory.hpp"

namespace arctrace::cli {
namespace {

using reader::KernelRecords;

constexpr int kStatusInterrupted = 130;
constexpr uint64_t kRecordsBetweenChecks = 1 << 14;

// One report, from the open trace to the last line.
class ReportRun {
 public:
  ReportRun(const ReportOptions& options, reader::Trace& trace)
      : options_(options),
        trace_(trace),
        symbolizer_(symbol_options(options)),
        write_(output_.writer()),
        json_(write_),
        view_(options.view->make(view_settings())),
        replay_(trace.definitions(), &symbolizer_, replay_options()),
        describer_(trace, replay_.resolver(), {}),
        gap_finder_(trace.definitions(), &trace.clock(), trace.session().mode),
        gaps_(trace.definitions()) {}

  absl::StatusOr<int> run() {
    if (absl::Status s = check_kernel_records(); !s.ok()) return s;
    begin();
    if (absl::Status s = read(); !s.ok()) return s;
    replay_.finish();
    for (const reader::Gap& gap : gap_finder_.finish(&trace_.summary())) add(gap);
    warn_of_nothing();
    if (absl::Status s = is_json() ? finish_json() : finish_text(); !s.ok()) return s;
    if (absl::Status s = output_.finish(); !s.ok()) return s;
    return interrupted_ ? kStatusInterrupted : 0;
  }

 private:
  static reader::SymbolOptions symbol_options(const ReportOptions& options) {
    reader::SymbolOptions symbols;
    symbols.allow_download = options.download;
    return symbols;
  }

  bool is_json() const { return options_.format == OutputFormat::kJson; }

  reader::ViewSettings view_settings() {
    reader::ViewSettings settings;
    settings.options = options_.shown;
    if (!is_json()) {
      settings.options.style =
          reader::terminal_style(options_.color, options_.full_names);
    }
    settings.grouping = options_.grouping();
    settings.min_duration_ns = options_.filter.min_duration_ns;
    settings.describe = [this](const reader::Record& record, reader::FieldSink& out) {
      describer_.describe(record, {}, out);
    };
    return settings;
  }

  reader::ReplayOptions replay_options() {
    reader::ReplayOptions made;
    made.filter = options_.filter;
    made.clock = options_.clock;
    made.all_threads = options_.all_threads;
    made.has_wake_ups = !trace_.session().has_perf_records;
    if (options_.has_thread_filter()) {
      made.wants_thread = [this](reader::ThreadIndex thread) {
        return options_.wants_thread(trace_.definitions(), thread);
      };
    }
    made.ticks = &trace_.clock();
    made.mode = trace_.session().mode;
    made.listener = view_->call_listener();
    made.schedule = view_->schedule_listener();
    return made;
  }

  absl::Status check_kernel_records() const {
    const std::string needs = options_.needs_kernel();
    if (!needs.empty() && !replay_.has_dispatches()) {
      return absl::FailedPreconditionError(
          absl::StrCat(options_.path, " has no records of the kernel, which ", needs,
                       " needs: record with --kernel"));
    }
    if (options_.view->needs == KernelRecords::kWakeUps &&
        trace_.session().has_perf_records) {
      return absl::FailedPreconditionError(absl::StrCat(
          options_.path, " has no wake-ups, which ", needs,
          " needs, because it was recorded by perf events: record with --kernel=bpf"));
    }
    return absl::OkStatus();
  }

  void begin() {
    if (is_json()) {
      json_.begin_object();
      view_->begin_json(replay_, json_);
    } else {
      if (!options_.no_header) write_(reader::report_head_text(trace_.session()));
      view_->begin_text(replay_, write_);
    }
  }

  absl::Status read() {
    const reader::InterruptWatch watch;
    reader::Progress progress(!options_.view->writes_while_reading);
    uint64_t records = 0;
    return trace_.read([&](const reader::Record& record) {
      replay_.add(record);
      if (const std::optional<reader::Gap> gap = gap_finder_.add(record)) add(*gap);
      if (++records % kRecordsBetweenChecks != 0) return true;
      progress.update(records);
      interrupted_ = reader::InterruptWatch::interrupted();
      return !interrupted_ && output_.good();
    });
  }

  // Gaps of threads and times that are filtered out are not shown.
  void add(const reader::Gap& gap) {
    const reader::ReplayFilter& filter = options_.filter;
    if (gap.to_ns < filter.from_ns || gap.from_ns >= filter.until_ns) return;
    if (gap.thread != reader::kNoIndex && options_.has_thread_filter() &&
        !options_.wants_thread(trace_.definitions(), gap.thread)) {
      return;
    }
    gaps_.add(gap);
  }

  // A filter that lets no call pass makes a table that looks like that of a program that
  // makes no calls.
  void warn_of_nothing() const {
    if (!options_.filter.has_functions() || interrupted_) return;
    const reader::CallTree& tree = replay_.tree();
    for (const reader::ThreadTree& thread : replay_.threads()) {
      if (tree[thread.root].first_child != reader::kNoNode) return;
    }
    reader::print_warning("no call passes the filters");
  }

  absl::Status finish_text() {
    if (replay_.threads().empty()) {
      write_("\nNothing to show: no thread has records that pass the filters.\n");
    } else if (absl::Status s = view_->write_text(replay_, write_); !s.ok()) {
      return s;
    }
    if (!options_.no_header) {
      write_(gaps_.text());
      write_(reader::report_end_text(summary()));
    }
    return absl::OkStatus();
  }

  absl::Status finish_json() {
    if (absl::Status s = view_->write_json(replay_, json_); !s.ok()) return s;
    gaps_.write_json(json_);
    reader::write_report_end_json(summary(), json_);
    json_.end();
    json_.finish();
    return absl::OkStatus();
  }

  reader::ReportSummary summary() const {
    return {trace_.summary(), replay_, symbolizer_.findings(), interrupted_};
  }

  const ReportOptions& options_;
  reader::Trace& trace_;
  reader::Symbolizer symbolizer_;
  reader::Output output_;
  const reader::WriteText write_;
  reader::JsonWriter json_;
  const std::unique_ptr<reader::View> view_;
  reader::Replay replay_;
  reader::RecordDescriber describer_;
  reader::GapFinder gap_finder_;
  reader::GapList gaps_;
  bool interrupted_ = false;
};

absl::StatusOr<int> report(const ReportOptions& options) {
  const std::string path = file_or_session(options.path);
  absl::StatusOr<reader::Trace> trace = reader::Trace::open(path);
  if (!trace.ok()) return trace.status();
  const std::unique_ptr<ActingWithRights> rights = act_as_owner(path);
  warn_of_left_buffer(trace->session());
  return ReportRun(options, *trace).run();
}

}  // namespace

Runner add_report(CLI::App& root) {
  auto options = std::make_shared<ReportOptions>();
  CLI::App* app =
      root.add_subcommand("report", "show call stacks and the time spent in them");
  add_report_options(*app, *options);
  return [options]() -> absl::StatusOr<int> {
    if (absl::Status s = complete_report_options(*options); !s.ok()) return s;
    return report(*options);
  };
}

}  // namespace arctrace::cli
