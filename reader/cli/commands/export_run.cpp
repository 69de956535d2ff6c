#include <absl/strings/str_cat.h>
#include <arctrace/format.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "reader/cli/commands/commands.hpp"
#include "reader/cli/commands/replay_setup.hpp"
#include "reader/cli/record/open_trace.hpp"
#include "reader/export/export_file.hpp"
#include "reader/render/left_out.hpp"
#include "reader/render/output.hpp"
#include "reader/render/session_text.hpp"
#include "reader/render/terminal.hpp"
#include "reader/replay/listener.hpp"
#include "reader/replay/replay.hpp"
#include "reader/streams/record_describer.hpp"
#include "reader/streams/replay_run.hpp"
#include "reader/symbols/symbolizer.hpp"
#include "reader/trace/event_fields.hpp"
#include "reader/trace/gaps.hpp"
#include "reader/trace/text_escape.hpp"
#include "reader/trace/trace.hpp"

namespace arctrace::cli {
namespace {

// One export, from the open trace to the last byte.
class ExportRun {
 public:
  // All must outlive this object.
  ExportRun(const ExportOptions& options, reader::Trace& trace,
            reader::EventFilter& events, reader::ExportFile& file)
      : options_(options),
        trace_(trace),
        events_(events),
        file_(file),
        symbolizer_(symbol_options(options.download)),
        write_([this](std::string_view text) { return write(text); }),
        exporter_(options.format->make(export_settings())),
        replay_(trace.definitions(), &symbolizer_, made_replay_options()),
        describer_(trace, replay_.resolver(), {}) {}

  // Returns whether everything is written; false after Ctrl-C. REQUIRES: an
  // InterruptWatch.
  absl::StatusOr<bool> run() {
    if (absl::Status s = check(); !s.ok()) return s;
    if (absl::Status s = survey(); !s.ok()) return s;
    if (reader::InterruptWatch::interrupted()) return false;
    exporter_->begin(replay_, write_);
    if (absl::Status s = read(); !s.ok()) return s;
    if (reader::InterruptWatch::interrupted()) return false;
    if (absl::Status s = exporter_->finish(); !s.ok()) return s;
    warn_of_empty_replay(options_, replay_);
    warn_of_stamps(trace_.session());
    return !reader::InterruptWatch::interrupted();
  }

  uint64_t findings() const {
    return trace_.summary().findings + replay_.finding_count();
  }

 private:
  reader::ExportSettings export_settings() {
    reader::ExportSettings settings;
    settings.weight = options_.weight;
    settings.grouping = options_.grouping.value_or(options_.format->grouping);
    settings.min_duration_ns = options_.filter.min_duration_ns;
    for (const TimeRange& range : options_.exact) {
      settings.exact.push_back({range.from_ns, range.until_ns});
    }
    settings.definitions = &trace_.definitions();
    settings.session = &trace_.session();
    settings.summary = &trace_.summary();
    settings.events = &events_;
    settings.describe = [this](const reader::Record& record, reader::FieldSink& out) {
      describer_.describe(record, {}, out);
    };
    return settings;
  }

  reader::ReplayOptions made_replay_options() {
    reader::ReplayOptions made = replay_options(options_, trace_);
    made.listener = exporter_->call_listener();
    if (events_.is_set()) {
      made.listener = &admitted_.emplace(*made.listener, events_);
    }
    if (!made.is_corrected && !exporter_->shows_costs()) made.hook_costs = {};
    // Without the kernel's records each thread would seem to run all the time.
    if (trace_.definitions().has_dispatches()) {
      made.schedule = exporter_->schedule_listener();
    }
    return made;
  }

  absl::Status check() const {
    const std::string& path = options_.paths.front();
    if (absl::Status s = check_whole(trace_.session(), path, options_.partial, "exports");
        !s.ok()) {
      return s;
    }
    const bool needs_kernel = options_.all_threads ||
                              options_.weight == reader::ExportWeight::kCpu ||
                              options_.weight == reader::ExportWeight::kOffCpu;
    if (needs_kernel && !trace_.definitions().has_dispatches()) {
      return lacks_kernel_records(path,
                                  options_.all_threads ? "--all-threads" : "--weight");
    }
    return absl::OkStatus();
  }

  // After Ctrl-C there is no use in producing more.
  bool wants_more() const {
    return file_.good() && !reader::InterruptWatch::interrupted();
  }

  bool write(std::string_view text) {
    if (wants_more()) file_.write(text);
    return wants_more();
  }

  // Runs the exporter's survey, which is only about when threads were on a CPU, so that
  // functions need no names.
  absl::Status survey() {
    reader::ScheduleListener* listener = exporter_->survey_listener();
    const reader::Session& session = trace_.session();
    if (listener == nullptr || session.raw || session.has_perf_records ||
        !trace_.definitions().has_dispatches()) {
      return absl::OkStatus();
    }
    reader::ReplayOptions made = replay_options(options_, trace_);
    made.schedule = listener;
    made.max_findings = 0;
    reader::Replay replay(trace_.definitions(), nullptr, made);
    reader::ReplayWatch watch;
    watch.finishes_when_stopped = true;
    ReadProgress progress(trace_);
    watch.goes = [&](const reader::ReadSoFar& so_far) {
      progress.update(so_far);
      return wants_more();
    };
    if (const auto read = run_replay(trace_, replay, watch); !read.ok()) {
      return read.status();
    }
    return exporter_->finish_survey(replay);
  }

  absl::Status read() {
    ReadProgress progress(trace_);
    reader::ReplayWatch watch;
    watch.finishes_when_stopped = true;
    watch.gap = [this](const reader::Gap& gap) { add(gap); };
    watch.goes = [&](const reader::ReadSoFar& so_far) {
      progress.update(so_far);
      return wants_more();
    };
    return run_replay(trace_, replay_, watch, reader::Reading::kConcurrent).status();
  }

  void add(reader::Gap gap) {
    if (!options_.wants_gap(trace_.definitions(), gap)) return;
    gap.from_ns = std::max(gap.from_ns, options_.filter.from_ns);
    gap.to_ns = std::min(gap.to_ns, options_.filter.until_ns);
    exporter_->gap(gap);
  }

  const ExportOptions& options_;
  reader::Trace& trace_;
  reader::EventFilter& events_;
  reader::ExportFile& file_;
  reader::Symbolizer symbolizer_;
  const reader::WriteText write_;
  const std::unique_ptr<reader::Exporter> exporter_;
  std::optional<reader::EventFilterListener> admitted_;  // before the exporter's listener
  reader::Replay replay_;
  reader::RecordDescriber describer_;
};

// "1,234 records of 2 processes, 3 lost (full 3), 5 overwritten: out.json (12.3 MiB)"
void announce(const ExportOptions& options, const reader::Summary& sums, uint64_t bytes) {
  const std::string lost =
      sums.lost == 0 ? "none lost"
                     : absl::StrCat(reader::grouped_text(sums.lost), " lost (",
                                    reader::losses_text(sums.lost_by_cause), ")");
  reader::print_message(absl::StrCat(
      reader::count_text(sums.records, "record"), " of ",
      reader::count_text(sums.processes, "process", "processes"), ", ", lost,
      reader::other_missing_text(sums), ": ", reader::escaped(options.output), " (",
      reader::bytes_text(bytes), ")"));
}

void warn(const ExportOptions& options, uint64_t lost, uint64_t findings,
          uint64_t bytes) {
  const std::string path = reader::escaped(options.paths.front());
  // If the output is a file, the line about it has the losses.
  if (options.to_stdout() && lost != 0) {
    reader::print_warning(absl::StrCat(reader::count_text(lost, "record"),
                                       " of the trace were lost: arctrace info ", path,
                                       " says why"));
  }
  if (findings != 0) {
    reader::print_warning(absl::StrCat(reader::count_text(findings, "finding"),
                                       " in the trace: arctrace check ", path,
                                       " lists them"));
  }
  const uint64_t comfortable = options.format->comfortable_bytes;
  if (comfortable != 0 && bytes > comfortable) {
    reader::print_warning(
        absl::StrCat("viewers of ", options.format->name, " are slow with files above ",
                     comfortable / 1'000'000,
                     " MB: -r START~STOP exports a part; --to=perfetto is smaller"));
  }
}

}  // namespace

absl::StatusOr<int> run_export(const ExportOptions& options) {
  const std::vector<std::string> paths = files_or_sessions(options.paths);
  // The watch lasts to the end, so that Ctrl-C at any time leaves no temporary file.
  const reader::InterruptWatch watch;
  absl::StatusOr<std::unique_ptr<reader::ExportFile>> file =
      reader::ExportFile::create(options.output, options.force);
  if (!file.ok()) return file.status();
  absl::StatusOr<reader::Trace> trace =
      open_with_abandoned_buffer(paths, {.range = options.filter.read_range()});
  if (!trace.ok()) return trace.status();
  absl::StatusOr<reader::EventFilter> events =
      reader::EventFilter::make(trace->definitions(), options.where);
  if (!events.ok()) return events.status();
  absl::StatusOr<bool> whole = false;
  uint64_t findings = 0;
  {
    const std::unique_ptr<recorder::ActingWithRights> rights =
        act_as_owner(paths.front());
    ExportRun run(options, *trace, *events, **file);
    whole = run.run();
    findings = run.findings();
  }
  if (!whole.ok()) return whole.status();
  if (!*whole) {
    reader::print_message(options.to_stdout()
                              ? "interrupted: what was written is not complete"
                              : "interrupted: nothing is written");
    return kStatusInterrupted;
  }
  if (absl::Status s = (*file)->publish(); !s.ok()) return s;
  const reader::Summary& sums = trace->summary();
  if (!options.to_stdout()) announce(options, sums, (*file)->bytes());
  if (events->is_set()) reader::print_message(reader::left_out_events_text(*events));
  warn(options, sums.lost, findings, (*file)->bytes());
  return 0;
}

}  // namespace arctrace::cli
