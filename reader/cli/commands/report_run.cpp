#include "reader/cli/commands/report_run.hpp"

#include <absl/strings/str_cat.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "reader/cli/commands/commands.hpp"
#include "reader/cli/commands/empty_replay.hpp"
#include "reader/cli/commands/replay_setup.hpp"
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
#include "reader/trace/text_escape.hpp"
#include "reader/trace/trace.hpp"
#include "src/recorder/buffer/session_directory.hpp"

namespace arctrace::cli {
namespace {

using reader::KernelRecords;

// One report, from the open trace to the last line.
class ReportRun {
 public:
  ReportRun(const ReportOptions& options, reader::Trace& trace)
      : options_(options),
        trace_(trace),
        symbolizer_(symbol_options(options.download)),
        style_(is_json() ? reader::TextStyle{} : options.terminal.style()),
        write_(output_.writer()),
        json_(write_),
        view_(options.view->make(view_settings())),
        replay_(trace.definitions(), &symbolizer_, made_replay_options()),
        describer_(trace, replay_.resolver(), {}),
        gap_finder_(trace.definitions(), &trace.clock(), trace.session().mode),
        gaps_(trace.definitions()) {
    if (!is_json()) options.terminal.apply_to(output_);
  }

  absl::StatusOr<int> run() {
    if (absl::Status s = check_kernel_records(); !s.ok()) return s;
    begin();
    if (absl::Status s = read(); !s.ok()) return s;
    replay_.finish();
    for (const reader::Gap& gap : gap_finder_.finish(&trace_.summary())) add(gap);
    if (absl::Status s = check_filters(); !s.ok()) return s;
    if (absl::Status s = is_json() ? finish_json() : finish_text(); !s.ok()) return s;
    if (absl::Status s = output_.finish(); !s.ok()) return s;
    return interrupted_ ? kStatusInterrupted : 0;
  }

 private:
  bool has_header() const { return !options_.no_header && !options_.view->is_complete; }
  bool is_json() const { return options_.format == OutputFormat::kJson; }

  reader::ViewSettings view_settings() {
    reader::ViewSettings settings;
    settings.options = options_.shown;
    settings.options.style = style_;
    settings.functions = options_.functions;
    settings.grouping = options_.grouping();
    settings.min_duration_ns = options_.filter.min_duration_ns;
    settings.is_json = is_json();
    settings.definitions = &trace_.definitions();
    settings.session = &trace_.session();
    settings.summary = &trace_.summary();
    settings.describe = [this](const reader::Record& record, reader::FieldSink& out) {
      describer_.describe(record, {}, out);
    };
    return settings;
  }

  reader::ReplayOptions made_replay_options() {
    reader::ReplayOptions made = replay_options(options_, trace_);
    made.clock = options_.clock;
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
      if (has_header()) write_(reader::report_head_text(trace_.session()));
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
      if (++records % reader::kRecordsBetweenChecks != 0) return true;
      progress.update(records);
      interrupted_ = reader::InterruptWatch::interrupted();
      return !interrupted_ && output_.good();
    });
  }

  void add(const reader::Gap& gap) {
    if (options_.wants_gap(trace_.definitions(), gap)) gaps_.add(gap);
  }

  // Error: the view is about functions, of which there is none.
  absl::Status check_filters() const {
    if (interrupted_) return absl::OkStatus();
    if (!replay_.threads().empty()) {
      const std::string problem =
          unmatched_functions(options_.functions, options_, replay_);
      if (!problem.empty()) return absl::NotFoundError(problem);
    }
    warn_of_empty_replay(options_, replay_);
    return absl::OkStatus();
  }

  absl::Status finish_text() {
    if (replay_.threads().empty()) {
      write_("\nNothing to show: no thread has records that pass the filters.\n");
    } else if (absl::Status s = view_->write_text(replay_, write_); !s.ok()) {
      return s;
    }
    if (interrupted_ && options_.view->is_complete) {
      write_(reader::interrupted_text());
    }
    if (has_header()) {
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
  const reader::TextStyle style_;
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

}  // namespace

absl::StatusOr<int> run_report(const ReportOptions& options) {
  const std::string path = file_or_session(options.path);
  absl::StatusOr<reader::Trace> trace =
      reader::Trace::open(path, {.range = options.filter.read_range()});
  if (!trace.ok()) return trace.status();
  const std::unique_ptr<ActingWithRights> rights = act_as_owner(path);
  warn_of_left_buffer(trace->session());
  return ReportRun(options, *trace).run();
}

}  // namespace arctrace::cli
