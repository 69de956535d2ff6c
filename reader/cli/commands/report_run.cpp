#include "reader/cli/commands/report_run.hpp"

#include <absl/strings/str_cat.h>

#include <memory>
#include <optional>

#include "reader/cli/commands/report_terminal.hpp"
#include "reader/render/output.hpp"
#include "reader/render/record_describer.hpp"
#include "reader/render/session_text.hpp"
#include "reader/replay/replay.hpp"
#include "reader/report/flow_view.hpp"
#include "reader/report/function_views.hpp"
#include "reader/report/invocations_view.hpp"
#include "reader/report/kinds_view.hpp"
#include "reader/report/summary_json.hpp"
#include "reader/report/threads_view.hpp"
#include "reader/report/tree_view.hpp"
#include "reader/report/wakers_view.hpp"
#include "reader/symbols/symbolizer.hpp"
#include "reader/trace/text_escape.hpp"
#include "reader/trace/trace.hpp"
#include "src/recorder/buffer/session_directory.hpp"

namespace arctrace::cli {
namespace {

constexpr int kStatusInterrupted = 130;
constexpr uint64_t kRecordsBetweenChecks = 1 << 14;
constexpr size_t kSymbolFindingsShown = 5;

class ReportRun {
 public:
  ReportRun(const ReportOptions& options, reader::Trace& trace)
      : options_(options),
        trace_(trace),
        symbolizer_(symbol_options(options)),
        write_([this](std::string_view text) {
          output_.write(text);
          return output_.good();
        }),
        json_(write_) {
    shown_ = options.shown;
    if (!is_json()) shown_.style = text_style(options);
  }

  absl::StatusOr<int> run() {
    make_listener();
    make_replay();
    if (options_.needs_kernel() != nullptr && !replay_->has_dispatches()) {
      return absl::FailedPreconditionError(
          absl::StrCat(options_.path, " has no records of the kernel, which ",
                       options_.needs_kernel(), " needs: record with --kernel"));
    }
    if (options_.view == View::kWakers && trace_.session().has_perf_records) {
      return absl::FailedPreconditionError(absl::StrCat(
          options_.path, " was recorded by perf events, which don't tell who woke whom, ",
          "which --view=wakers needs: record with --kernel=bpf"));
    }
    begin();
    if (absl::Status s = read(); !s.ok()) return s;
    replay_->finish();
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

  bool is_json() const { return options_.format == Format::kJson; }

  void make_listener() {
    const auto describe = [this](const reader::Record& record, bool json,
                                 std::string& out) {
      TextFields text(out);
      JsonFields members(out);
      describer_->describe(record, {}, json ? static_cast<FieldSink&>(members) : text);
    };
    if (options_.view == View::kFlow) {
      flow_.emplace(shown_, options_.filter.min_duration_ns, describe,
                    is_json() ? nullptr : &write_, is_json() ? &json_ : nullptr);
    } else if (options_.view == View::kInvocations) {
      invocations_.emplace(shown_, describe, is_json());
    } else if (options_.view == View::kThreads) {
      threads_.emplace(shown_);
    } else if (options_.view == View::kWakers) {
      wakers_.emplace(shown_);
    }
  }

  void make_replay() {
    const reader::Definitions& definitions = trace_.definitions();
    reader::ReplayOptions replay_options;
    replay_options.filter = options_.filter;
    replay_options.clock = options_.clock;
    replay_options.all_threads = options_.all_threads;
    replay_options.has_wake_ups = !trace_.session().has_perf_records;
    if (!options_.pids.empty() || !options_.tids.empty() || !options_.processes.empty()) {
      replay_options.wants_thread = [&](reader::ThreadIndex thread) {
        return options_.wants_thread(definitions, thread);
      };
    }
    if (flow_.has_value()) replay_options.listener = &*flow_;
    if (invocations_.has_value()) replay_options.listener = &*invocations_;
    if (threads_.has_value()) replay_options.schedule = &*threads_;
    if (wakers_.has_value()) replay_options.schedule = &*wakers_;
    replay_.emplace(definitions, &symbolizer_, replay_options);
    describer_.emplace(trace_, replay_->resolver(), DescribeOptions{});
  }

  void begin() {
    if (is_json()) {
      json_.begin_object();
      if (flow_.has_value()) json_.key("flow").begin_array();
    } else if (!options_.no_header) {
      // The file, the command, the machine.
      const std::vector<std::string> facts = session_facts(trace_.session());
      for (size_t i = 0; i < std::min<size_t>(facts.size(), 3); ++i) {
        write_(facts[i] + "\n");
      }
    }
    if (flow_.has_value()) flow_->begin(*replay_);
  }

  absl::Status read() {
    const InterruptWatch watch;
    Progress progress(!flow_.has_value());
    uint64_t records = 0;
    return trace_.read([&](const reader::Record& record) {
      replay_->add(record);
      if (++records % kRecordsBetweenChecks != 0) return true;
      progress.update(records);
      interrupted_ = InterruptWatch::seen();
      return !interrupted_ && output_.good();
    });
  }

  absl::Status finish_text() {
    if (replay_->threads().empty()) {
      write_(
          "\nNothing to show: no thread has records, or none that the filters let "
          "through.\n");
    } else if (flow_.has_value()) {
      flow_->finish();
    } else if (invocations_.has_value()) {
      if (absl::Status s = invocations_->write_text(*replay_, write_); !s.ok()) return s;
    } else if (threads_.has_value()) {
      threads_->write_text(*replay_, write_);
    } else if (wakers_.has_value()) {
      wakers_->write_text(*replay_, write_);
    } else {
      const reader::TreeGroups groups(*replay_, options_.grouping());
      switch (options_.view) {
        case View::kFlat:
          reader::write_flat_text(groups, *replay_, shown_, write_);
          break;
        case View::kArcs:
          reader::write_arcs_text(groups, *replay_, shown_, write_);
          break;
        case View::kKinds:
          reader::write_kinds_text(groups, *replay_, shown_, write_);
          break;
        case View::kLogRt:
          reader::write_log_rt_text(groups, *replay_, shown_, write_);
          break;
        default:
          reader::write_tree_text(groups, *replay_, shown_, write_);
          break;
      }
    }
    if (!options_.no_header) write_(tail());
    return absl::OkStatus();
  }

  absl::Status finish_json() {
    if (flow_.has_value()) {
      flow_->finish();
    } else if (invocations_.has_value()) {
      if (absl::Status s = invocations_->write_json(*replay_, json_); !s.ok()) return s;
    } else if (threads_.has_value()) {
      threads_->write_json(*replay_, json_);
    } else if (wakers_.has_value()) {
      wakers_->write_json(*replay_, json_);
    } else {
      const reader::TreeGroups groups(*replay_, options_.grouping());
      switch (options_.view) {
        case View::kFlat:
          reader::write_flat_json(groups, *replay_, shown_, json_);
          break;
        case View::kArcs:
          reader::write_arcs_json(groups, *replay_, shown_, json_);
          break;
        case View::kKinds:
          reader::write_kinds_json(groups, *replay_, shown_, json_);
          break;
        case View::kLogRt:
          reader::write_log_rt_json(groups, *replay_, shown_, json_);
          break;
        default:
          reader::write_tree_json(groups, *replay_, shown_, json_);
          break;
      }
    }
    reader::write_summary_json(trace_.summary(), *replay_, interrupted_, json_);
    json_.key("symbol_findings").begin_array();
    for (const std::string& line : symbolizer_.findings()) json_.text(line);
    json_.end();
    json_.end();
    json_.finish();
    return absl::OkStatus();
  }

  // What the whole trace holds, what is missing in it, and what names are missing.
  std::string tail() const {
    std::string text = "\n";
    if (interrupted_) text += "Interrupted: what follows is of what was read so far.\n";
    reader::Summary summary = trace_.summary();
    summary.findings += replay_->finding_count();
    absl::StrAppend(&text, summary_line(summary), " in ",
                    reader::duration_text(static_cast<uint64_t>(summary.duration_ns)),
                    " of ", summary.processes,
                    summary.processes == 1 ? " process, " : " processes, ",
                    summary.threads, summary.threads == 1 ? " thread\n" : " threads\n");
    append_frames(text);
    const std::vector<std::string>& findings = symbolizer_.findings();
    for (size_t i = 0; i < findings.size() && i < kSymbolFindingsShown; ++i) {
      absl::StrAppend(&text, "symbols: ", reader::escaped(findings[i]), "\n");
    }
    if (findings.size() > kSymbolFindingsShown) {
      absl::StrAppend(&text, "symbols: ", findings.size() - kSymbolFindingsShown,
                      " more modules without their own\n");
    }
    return text;
  }

  void append_frames(std::string& text) const {
    const reader::ReplayTotals& totals = replay_->totals();
    std::string line;
    const auto append = [&](uint64_t count, const char* what) {
      if (count == 0) return;
      absl::StrAppend(&line, line.empty() ? "frames: " : ", ", count, " ", what);
    };
    append(totals.open, "open at the end");
    append(totals.unwound, "unwound");
    append(totals.entered_before, "entered before tracing");
    append(totals.inherited, "inherited by fork");
    append(totals.entry_lost, "without their entry");
    append(totals.exit_lost, "without their exit");
    append(totals.orphans, "orphan exits");
    if (!line.empty()) absl::StrAppend(&text, line, "\n");
  }

  const ReportOptions& options_;
  reader::Trace& trace_;
  reader::ViewOptions shown_;
  reader::Symbolizer symbolizer_;
  Output output_;
  const reader::WriteText write_;
  reader::JsonWriter json_;
  std::optional<reader::FlowView> flow_;
  std::optional<reader::InvocationsView> invocations_;
  std::optional<reader::ThreadsView> threads_;
  std::optional<reader::WakersView> wakers_;
  std::optional<reader::Replay> replay_;
  std::optional<RecordDescriber> describer_;
  bool interrupted_ = false;
};

}  // namespace

absl::StatusOr<int> run_report(const ReportOptions& options) {
  absl::StatusOr<reader::Trace> trace =
      reader::Trace::open(file_or_session(options.path));
  if (!trace.ok()) return trace.status();
  return ReportRun(options, *trace).run();
}

}  // namespace arctrace::cli
