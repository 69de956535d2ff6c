#include "reader/report/summary_view.hpp"

#include <absl/strings/str_cat.h>

#include "reader/analysis/function_totals.hpp"
#include "reader/analysis/time_parts.hpp"
#include "reader/report/function_rows.hpp"
#include "reader/report/summary_lines.hpp"
#include "reader/report/tree_json.hpp"

namespace arctrace::reader {
namespace {

constexpr size_t kLinesMax = 40;

// Hands each call to both listeners.
class BothListeners : public ReplayListener {
 public:
  BothListeners(ReplayListener& a, ReplayListener& b) : a_(a), b_(b) {}

  uint64_t frame_opened(const FrameInfo& frame) override {
    a_.frame_opened(frame);
    return b_.frame_opened(frame);
  }
  void frame_closed(const FrameInfo& frame, uint64_t token, bool shown) override {
    a_.frame_closed(frame, token, shown);
    b_.frame_closed(frame, token, shown);
  }
  void frame_adopted(const FrameInfo& frame) override {
    a_.frame_adopted(frame);
    b_.frame_adopted(frame);
  }
  void point(const PointInfo& /*point*/) override {}

 private:
  ReplayListener& a_;
  ReplayListener& b_;
};

class SummaryView : public View {
 public:
  explicit SummaryView(const ViewSettings& settings)
      : options_(settings.options),
        grouping_(settings.grouping),
        session_(settings.session),
        summary_(settings.summary),
        has_wake_ups_(!settings.is_json && settings.definitions->has_dispatches() &&
                      session_ != nullptr && !session_->has_perf_records),
        times_(*settings.definitions, Grouping::kAll),
        ends_([this](FunctionId function) {
          return signal_of(replay_->functions()[function], session_);
        }) {}

  ReplayListener* call_listener() override { return &both_; }
  ScheduleListener* schedule_listener() override {
    return has_wake_ups_ ? &log_ : nullptr;
  }
  void begin_text(Replay& replay, const WriteText& /*write*/) override {
    replay_ = &replay;
  }
  void begin_json(Replay& replay, JsonWriter& /*json*/) override { replay_ = &replay; }

  absl::Status write_text(Replay& replay, const WriteText& write) override {
    const TreeGroups groups(replay, Grouping::kAll);
    FunctionLabels labels(replay, options_.lines);
    SummaryFacts facts = facts_of(replay, groups);
    if (has_wake_ups_) facts.log = &log_;
    const TextStyle& style = options_.style;
    std::vector<SummarySection> sections;
    sections.push_back(head_section(facts, style));
    sections.push_back(crash_section(facts, labels, style));
    sections.push_back(critical_section(facts, labels, style));
    sections.push_back(parts_section(facts, style));
    sections.push_back(functions_section(facts, labels, style));
    sections.push_back(paths_section(facts, labels, style));
    sections.push_back(threads_section(facts, labels, style));
    if (options_.limit != 0) sections.push_back(hints_section(facts, labels));
    if (options_.limit != UINT64_MAX) {
      for (SummarySection& section : sections) {
        if (section.head.empty() || section.rows.size() <= options_.limit) continue;
        section.rows.resize(static_cast<size_t>(options_.limit));
      }
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
    json.member("thread_ns", tree[all.root].cum_ns);
    write_cpu_json(tree.cpu_cum(all.root), replay.known_times(), json);
    write_parts_json(tree, all.root, replay, json);
    write_functions_json(all, times_, options_, replay, labels, json);
    write_trees_json(TreeGroups(replay, grouping_), options_, replay, labels, json);
    return absl::OkStatus();
  }

 private:
  SummaryFacts facts_of(Replay& replay, const TreeGroups& groups) const {
    return {replay, session_, summary_, groups.groups().front(), times_, ends_, nullptr};
  }

  static void write_parts_json(const CallTree& tree, NodeIndex root, const Replay& replay,
                               JsonWriter& json) {
    json.key("parts").begin_array();
    for (const TimePart& part : time_parts(tree, replay.functions(), root)) {
      json.begin_object();
      json.member("name", part.name);
      json.member("calls", part.calls);
      json.member("base_ns", part.base_ns);
      if (part.end_within_ns != 0) json.member("end_within_ns", part.end_within_ns);
      write_cpu_json(part.cpu, replay.known_times(), json);
      json.end();
    }
    json.end();
  }

  const ViewOptions options_;
  const Grouping grouping_;
  const Session* const session_;
  const Summary* const summary_;
  const bool has_wake_ups_;
  const Replay* replay_ = nullptr;
  FunctionTimes times_;
  ThreadEnds ends_;
  BothListeners both_{times_, ends_};
  ScheduleLog log_;
};

}  // namespace

std::unique_ptr<View> make_summary_view(const ViewSettings& settings) {
  return std::make_unique<SummaryView>(settings);
}

}  // namespace arctrace::reader
