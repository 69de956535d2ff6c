#include <absl/strings/str_cat.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "reader/analysis/recorded_state.hpp"
#include "reader/cli/commands/commands.hpp"
#include "reader/cli/commands/replay_setup.hpp"
#include "reader/cli/record/open_trace.hpp"
#include "reader/render/gap_list.hpp"
#include "reader/render/labels.hpp"
#include "reader/render/left_out.hpp"
#include "reader/render/output.hpp"
#include "reader/render/session_text.hpp"
#include "reader/render/shell_text.hpp"
#include "reader/render/terminal.hpp"
#include "reader/replay/listener.hpp"
#include "reader/replay/replay.hpp"
#include "reader/report/report_summary.hpp"
#include "reader/streams/record_describer.hpp"
#include "reader/streams/replay_run.hpp"
#include "reader/symbols/symbolizer.hpp"
#include "reader/trace/event_fields.hpp"
#include "reader/trace/gaps.hpp"
#include "reader/trace/text_escape.hpp"
#include "reader/trace/trace.hpp"
#include "src/recording/hook_costs.hpp"

namespace arctrace::cli {
namespace {

using reader::KernelRecords;

// One report, from the open trace to the last line.
class ReportRun {
 public:
  ReportRun(const ReportOptions& options, reader::Trace& trace,
            reader::EventFilter events, std::vector<arctrace_hook_cost> costs)
      : options_(options),
        trace_(trace),
        events_(std::move(events)),
        costs_(std::move(costs)),
        symbolizer_(symbol_options(options.download)),
        style_(is_json() ? reader::TextStyle{} : options.terminal.style()),
        write_(output_.writer()),
        json_(write_),
        view_(options.view->make(view_settings())),
        replay_(trace.definitions(), &symbolizer_, made_replay_options()),
        describer_(trace, replay_.resolver(), {}),
        gaps_(trace.definitions()) {
    if (!is_json()) options.terminal.apply_to(output_);
  }

  absl::StatusOr<int> run() {
    if (absl::Status s = check_kernel_records(); !s.ok()) return s;
    if (absl::Status s = check_times(); !s.ok()) return s;
    if (absl::Status s = check_costs(); !s.ok()) return s;
    begin();
    if (absl::Status s = read(); !s.ok()) return s;
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
    settings.gaps = &gaps_;
    settings.enabled = &enabled_;
    settings.symbol_findings = &symbolizer_.findings();
    if (options_.paths != std::vector<std::string>{kDefaultFile}) {
      for (const std::string& path : options_.paths) {
        settings.files.push_back(reader::shell_file(path));
      }
    }
    settings.has_debuginfod = options_.download;
    settings.describe = [this](const reader::Record& record, reader::FieldSink& out) {
      describer_.describe(record, {}, out);
    };
    return settings;
  }

  reader::ReplayOptions made_replay_options() {
    reader::ReplayOptions made = replay_options(options_, trace_);
    made.full_names = options_.terminal.full_names;
    made.clock = options_.clock;
    made.is_corrected = options_.corrected;
    made.hook_costs = costs_;
    made.listener = view_->call_listener();
    if (events_.is_set()) {
      made.listener = &admitted_.emplace(*made.listener, events_);
    }
    made.schedule = view_->schedule_listener();
    return made;
  }

  absl::Status check_kernel_records() const {
    const std::string needs = options_.needs_kernel();
    if (!needs.empty() && !replay_.has_dispatches()) {
      return lacks_kernel_records(options_.paths.front(), needs);
    }
    if (options_.view->needs == KernelRecords::kWakeUps &&
        trace_.session().has_perf_records) {
      return absl::FailedPreconditionError(absl::StrCat(
          options_.paths.front(), " has no wake-ups, which ", needs,
          " needs, because it was recorded by perf events: record with --kernel=bpf"));
    }
    return absl::OkStatus();
  }

  // Error: the costs that are to be subtracted are not known.
  absl::Status check_costs() const {
    if (!options_.corrected || replay_.knows_costs()) return absl::OkStatus();
    return absl::FailedPreconditionError(
        absl::StrCat(options_.paths.front(),
                     " does not say what recording cost, which --corrected takes off: "
                     "recorders of version 0.1.0 or later measure that where "
                     "~/.cache/arctrace can be written"));
  }

  // Error: single calls are to be told by their times, of which the trace has none.
  absl::Status check_times() const {
    if (trace_.session().stamps != ARCTRACE_STAMPS_ORDER) return absl::OkStatus();
    const std::string needs = options_.view->needs_times
                                  ? absl::StrCat("--view=", options_.view->name)
                              : options_.corrected   ? "--corrected"
                              : !options_.of.empty() ? "--of"
                                                     : "";
    if (needs.empty()) return absl::OkStatus();
    return absl::FailedPreconditionError(
        absl::StrCat(options_.paths.front(), " has no times of single calls, which ",
                     needs, " needs: record without --clock=order"));
  }

  void begin() {
    if (is_json()) {
      json_.begin_object();
      reader::write_stamps_json(trace_.session(), json_);
      if (options_.corrected) json_.member("corrected", true);
      view_->begin_json(replay_, json_);
    } else {
      if (has_header()) write_(reader::report_head_text(trace_.session()));
      const std::string stamps = reader::stamps_text(trace_.session());
      if (!options_.no_header && !stamps.empty()) write_(stamps + "\n");
      if (options_.corrected && !options_.view->is_complete) {
        write_(std::string(reader::kCorrectedTitle) + "\n");
      }
      view_->begin_text(replay_, write_);
    }
  }

  absl::Status read() {
    const reader::InterruptWatch interrupts;
    ReadProgress progress(trace_, options_.view->writes_while_reading);
    reader::ReplayWatch watch;
    watch.finishes_when_stopped = true;
    watch.record = [this](const reader::Record& record) { enabled_.note(record); };
    watch.gap = [this](const reader::Gap& gap) { add(gap); };
    watch.goes = [&](const reader::ReadSoFar& so_far) {
      progress.update(so_far);
      interrupted_ = reader::InterruptWatch::interrupted();
      return !interrupted_ && output_.good();
    };
    return reader::run_replay(trace_, replay_, watch).status();
  }

  void add(const reader::Gap& gap) {
    if (options_.wants_gap(trace_.definitions(), gap)) gaps_.add(gap);
  }

  // Error: the view is about functions that the trace does not have.
  absl::Status check_filters() const {
    if (interrupted_) return absl::OkStatus();
    if (!replay_.threads().empty()) {
      const std::string problem =
          unmatched_functions(options_.functions, options_, replay_);
      if (!problem.empty()) return absl::NotFoundError(problem + unmatched_hint());
    }
    warn_of_empty_replay(options_, replay_);
    return absl::OkStatus();
  }

  // Why a function of the program may not be there, if that is known.
  std::string unmatched_hint() const {
    const std::string hint = reader::own_functions_hint(replay_, &trace_.session(),
                                                        &trace_.summary(), &enabled_, 0);
    if (!hint.empty()) return "; " + hint;
    const auto processes = trace_.definitions().processes();
    const bool is_patched =
        std::any_of(processes.begin(), processes.end(),
                    [](const reader::Process& process) { return process.is_patched; });
    if (!is_patched) return {};
    return absl::StrCat("; arctrace info --verbose ",
                        reader::escaped(options_.paths.front()),
                        " names functions that -P left, and why");
  }

  // What a report says in place of its rows. Calls and events that filters exclude leave
  // their threads, so only filters of threads and times can leave none.
  std::string nothing_text() const {
    if (options_.has_thread_filter() || options_.filter.has_range()) {
      return "Nothing to show: no thread has records that pass the filters.";
    }
    const std::string hint = reader::own_functions_hint(
        replay_, &trace_.session(), &trace_.summary(), &enabled_, style_.width);
    return absl::StrCat("Nothing to show: the trace has no records of any thread.",
                        hint.empty() ? "" : "\n", hint);
  }

  absl::Status finish_text() {
    if (replay_.threads().empty()) {
      write_(absl::StrCat("\n", nothing_text(), "\n"));
    } else if (absl::Status s = view_->write_text(replay_, write_); !s.ok()) {
      return s;
    }
    if (interrupted_ && options_.view->is_complete) {
      write_(reader::interrupted_text());
    }
    if (has_header()) {
      if (!options_.view->marks_left_out) {
        write_(reader::left_out_list_text(replay_, options_.shown.lines));
      }
      write_(gaps_.text());
      write_(reader::report_end_text(summary()));
    }
    return absl::OkStatus();
  }

  absl::Status finish_json() {
    if (absl::Status s = view_->write_json(replay_, json_); !s.ok()) return s;
    reader::write_left_out_json(reader::RecordedStates(replay_).causes(), json_);
    gaps_.write_json(json_);
    reader::write_report_end_json(summary(), json_);
    json_.end();
    json_.finish();
    return absl::OkStatus();
  }

  reader::ReportSummary summary() const {
    return {trace_.summary(), replay_,      symbolizer_.findings(),
            events_,          interrupted_, options_.shown.lines};
  }

  const ReportOptions& options_;
  reader::Trace& trace_;
  reader::EventFilter events_;
  const std::vector<arctrace_hook_cost> costs_;
  reader::Symbolizer symbolizer_;
  const reader::TextStyle style_;
  reader::Output output_;
  const reader::WriteText write_;
  reader::JsonWriter json_;
  const std::unique_ptr<reader::View> view_;
  std::optional<reader::EventFilterListener> admitted_;  // before the view's listener
  reader::Replay replay_;
  reader::RecordDescriber describer_;
  reader::GapList gaps_;
  reader::EnabledList enabled_;
  bool interrupted_ = false;
};

}  // namespace

absl::StatusOr<int> run_report(const ReportOptions& options) {
  const std::vector<std::string> paths = files_or_sessions(options.paths);
  absl::StatusOr<reader::Trace> trace =
      open_with_abandoned_buffer(paths, {.range = options.filter.read_range()});
  if (!trace.ok()) return trace.status();
  absl::StatusOr<reader::EventFilter> events =
      reader::EventFilter::make(trace->definitions(), options.where);
  if (!events.ok()) return events.status();
  // A buffer does not have the costs of hooks.
  std::vector<arctrace_hook_cost> costs = trace->session().raw
                                              ? recording::hook_costs_of(trace->session())
                                              : trace->session().hook_costs;
  const std::unique_ptr<recorder::ActingWithRights> rights = act_as_owner(paths.front());
  return ReportRun(options, *trace, *std::move(events), std::move(costs)).run();
}

}  // namespace arctrace::cli
