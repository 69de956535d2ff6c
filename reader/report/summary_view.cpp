#include <absl/strings/str_cat.h>

#include <utility>

#include "reader/analysis/function_totals.hpp"
#include "reader/analysis/kind_totals.hpp"
#include "reader/render/labels.hpp"
#include "reader/render/left_out.hpp"
#include "reader/report/group_view.hpp"
#include "reader/report/summary_lines.hpp"
#include "reader/report/views.hpp"

namespace arctrace::reader {
namespace {

constexpr size_t kLinesMax = 40;

class SummaryView : public View, private ReplayListener, private ScheduleListener {
 public:
  explicit SummaryView(const ViewSettings& settings)
      : options_(settings.options),
        grouping_(settings.grouping),
        session_(settings.session),
        summary_(settings.summary),
        gaps_(settings.gaps),
        enabled_(settings.enabled),
        symbol_findings_(settings.options.lines ? settings.symbol_findings : nullptr),
        files_(settings.files),
        has_debuginfod_(settings.has_debuginfod),
        keeps_log_(!settings.is_json),
        has_wake_ups_(settings.definitions->has_dispatches() && session_ != nullptr &&
                      !session_->has_perf_records),
        times_(*settings.definitions, Grouping::kAll),
        ends_([this](FunctionId function) {
          return signal_of(replay_->functions()[function], session_);
        }) {}

  ReplayListener* call_listener() override { return this; }
  ScheduleListener* schedule_listener() override {
    return has_wake_ups_ ? this : nullptr;
  }
  void begin_text(Replay& replay, const WriteText& /*write*/) override { begin(replay); }
  void begin_json(Replay& replay, JsonWriter& /*json*/) override { begin(replay); }

  absl::Status write_text(Replay& replay, const WriteText& write) override {
    const TreeGroups groups(replay, Grouping::kAll);
    FunctionLabels labels(replay, options_.lines);
    const Serving serving = loops_.find();
    SummaryFacts facts = facts_of(replay, groups.groups().front(), serving);
    if (has_wake_ups_) facts.log = &log_;
    const TextStyle& style = options_.style;
    std::vector<SummarySection> sections;
    sections.push_back(head_section(facts, labels, style));
    sections.push_back(crash_section(facts, labels, style));
    sections.push_back(other_crashes_section(facts, labels, style));
    sections.push_back(critical_section(facts, labels, style));
    sections.push_back(serving_section(facts, labels, style));
    const BusyGroup busy(replay, serving, facts.all);
    const SummaryFacts busy_facts = facts_of(replay, busy.group(), serving);
    SummarySection few = few_calls_section(facts, labels, style);
    if (few.rows.empty()) {
      sections.push_back(parts_section(busy_facts, style));
      sections.push_back(functions_section(busy_facts, labels, style));
      sections.push_back(paths_section(busy_facts, labels, style));
    } else {
      sections.push_back(std::move(few));
    }
    sections.push_back(threads_section(facts, labels, style));
    if (options_.limit != 0) sections.push_back(hints_section(facts, style));
    for (SummarySection& section : sections) {
      if (options_.limit == 0 && !section.head.empty()) section = {};
      section.cut(static_cast<size_t>(options_.limit));
    }
    write(summary_text(std::move(sections), kLinesMax));
    return absl::OkStatus();
  }

  absl::Status write_json(Replay& replay, JsonWriter& json) override {
    const TreeGroups groups(replay, Grouping::kAll);
    const TreeGroup& all = groups.groups().front();
    FunctionLabels labels(replay, options_.lines);
    const CallTree& tree = *all.tree;
    json.key("command").begin_array();
    for (const std::string& argument : first_command(replay.definitions())) {
      json.value(argument);
    }
    json.end();
    json.member("wall_ns", wall_ns(replay));
    json.member("thread_ns", tree[all.root].total_ns);
    write_cpu_json(tree.cpu_total(all.root), replay.known_times(), json);
    const uint64_t own_ps = own_work_ps(tree, replay.functions(), all.root);
    write_overhead_json(total_overhead_ps(tree, all.root) - own_ps, replay, json);
    json.member("arctrace_ns", own_ps / 1000);
    json.member("buffer_ends_ns", end_cost(replay, session_).ns);
    write_parts_json(tree, all.root, replay, json);
    const Serving serving;
    const SummaryFacts facts = facts_of(replay, all, serving);
    write_crash_json(facts, labels, json);
    write_other_crashes_json(facts, labels, json);
    if (has_wake_ups_) write_serving_json(loops_.find(), replay, labels, json);
    write_functions_json(all, times_, options_, replay, labels, json);
    write_trees_json(TreeGroups(replay, grouping_), options_, replay, labels, json);
    return absl::OkStatus();
  }

 private:
  void begin(const Replay& replay) {
    replay_ = &replay;
    if (has_wake_ups_) loops_.begin(replay, session_);
  }

  uint64_t frame_opened(const FrameInfo& frame) override {
    times_.frame_opened(frame);
    if (has_wake_ups_) loops_.frame_opened(frame);
    return ends_.frame_opened(frame);
  }
  void frame_closed(const FrameInfo& frame, uint64_t token, bool shown) override {
    times_.frame_closed(frame, token, shown);
    ends_.frame_closed(frame, token, shown);
  }
  void frame_adopted(const FrameInfo& frame) override {
    times_.frame_adopted(frame);
    ends_.frame_adopted(frame);
  }
  void point(const PointInfo& /*point*/) override {}
  void signal_came(const SignalInfo& signal) override { ends_.signal_came(signal); }
  void state_ended(const StateInfo& state) override {
    loops_.state_ended(state);
    if (keeps_log_) log_.state_ended(state);
  }
  void time_passed(const PathTime& time) override {
    if (keeps_log_) log_.time_passed(time);
  }
  void thread_made(const ThreadMade& made) override {
    loops_.thread_made(made);
    if (keeps_log_) log_.thread_made(made);
  }

  SummaryFacts facts_of(Replay& replay, const TreeGroup& all,
                        const Serving& serving) const {
    return {replay,         session_, summary_, all,   times_,           ends_,
            nullptr,        serving,  enabled_, gaps_, symbol_findings_, &files_,
            has_debuginfod_};
  }

  static void write_serving_json(const Serving& serving, Replay& replay,
                                 FunctionLabels& labels, JsonWriter& json) {
    json.member("is_server", serving.is_server);
    json.key("work_loops").begin_array();
    for (const WorkLoop& loop : serving.loops) {
      json.begin_object();
      write_thread_ids_json(replay.definitions(), loop.thread, json);
      json.key("path");
      write_path_json(replay.tree(), loop.node, labels, json);
      json.member("from_outside", loop.is_from_outside);
      json.member("calls", loop.calls);
      json.member("waits", loop.waits);
      json.member("no_work_ns", loop.no_work_ns);
      json.member("works", loop.work == nullptr ? 0 : loop.work->count());
      write_times_json(loop.work, json);
      json.end();
    }
    json.end();
  }

  static void write_parts_json(const CallTree& tree, NodeIndex root, const Replay& replay,
                               JsonWriter& json) {
    json.key("parts").begin_array();
    for (const TimePart& part : time_parts(tree, replay, root)) {
      json.begin_object();
      json.member("name", part.name);
      json.member("calls", part.calls);
      json.member("base_ns", part.self_ns);
      if (part.end_within_ns != 0) json.member("end_within_ns", part.end_within_ns);
      if (part.begin_within_ns != 0) {
        json.member("begin_within_ns", part.begin_within_ns);
      }
      write_cpu_json(part.cpu, replay.known_times(), json);
      json.end();
    }
    json.end();
  }

  const ViewOptions options_;
  const Grouping grouping_;
  const Session* const session_;
  const Summary* const summary_;
  const GapList* const gaps_;
  const EnabledList* const enabled_;
  const std::vector<std::string>* const symbol_findings_;
  const std::vector<std::string> files_;
  const bool has_debuginfod_;
  const bool keeps_log_;
  const bool has_wake_ups_;
  const Replay* replay_ = nullptr;
  FunctionTimes times_;
  ThreadEnds ends_;
  WorkLoops loops_;
  ScheduleLog log_;
};

}  // namespace

std::unique_ptr<View> make_summary_view(const ViewSettings& settings) {
  return std::make_unique<SummaryView>(settings);
}

}  // namespace arctrace::reader
