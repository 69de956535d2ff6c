// The rows of a critical path as text shows it, and the view `critical-path`.
#include "reader/report/critical_path_view.hpp"

#include <absl/strings/str_cat.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "reader/analysis/tree_groups.hpp"
#include "reader/render/labels.hpp"
#include "reader/render/report_parts.hpp"
#include "reader/render/session_text.hpp"
#include "reader/render/text_style.hpp"
#include "reader/replay/functions.hpp"
#include "reader/streams/critical_path.hpp"
#include "reader/trace/text_escape.hpp"

namespace arctrace::reader {
namespace {

std::string path_name(const Definitions& definitions, ThreadIndex thread) {
  const std::string program =
      process_label(definitions, definitions.threads()[thread].process);
  const std::string name = thread_label(definitions, thread);
  return escaped(program == name ? program : absl::StrCat(program, ", thread ", name));
}

template <class Row>
void sort_by_time(std::vector<Row>& rows) {
  std::stable_sort(rows.begin(), rows.end(),
                   [](const Row& a, const Row& b) { return a.time_ns > b.time_ns; });
}

}  // namespace

std::vector<CriticalPathRow> critical_path_rows(const CriticalPath& path,
                                                const Replay& replay,
                                                FunctionLabels& labels) {
  absl::btree_map<std::tuple<std::string, std::string, PathState>, uint64_t> merged;
  for (const auto& [key, sum] : path.sums) {
    const auto& [thread, node, state] = key;
    merged[{path_name(replay.definitions(), thread),
            path_text(replay.tree(), node, labels), state}] += sum.time_ns;
  }
  std::vector<CriticalPathRow> rows;
  for (const auto& [key, time_ns] : merged) {
    const auto& [name, text, state] = key;
    rows.push_back({time_ns, name, text, state});
  }
  sort_by_time(rows);
  return rows;
}

std::vector<CriticalPathName> critical_path_by_name(
    const std::vector<CriticalPathRow>& rows) {
  struct Merged {
    CriticalPathName row;
    absl::btree_map<std::string, uint64_t> paths;
  };
  absl::btree_map<std::string, Merged> merged;
  for (const CriticalPathRow& row : rows) {
    Merged& of_name = merged[row.name];
    of_name.row.time_ns += row.time_ns;
    of_name.row.states[static_cast<size_t>(row.state)] += row.time_ns;
    of_name.paths[row.path] += row.time_ns;
  }
  std::vector<CriticalPathName> names;
  for (auto& [name, of_name] : merged) {
    of_name.row.name = name;
    of_name.row.path =
        std::max_element(of_name.paths.begin(), of_name.paths.end(),
                         [](const auto& a, const auto& b) { return a.second < b.second; })
            ->first;
    names.push_back(std::move(of_name.row));
  }
  sort_by_time(names);
  return names;
}

std::string path_states_text(const std::array<uint64_t, kPathStates>& states) {
  std::string text;
  for (size_t i = 0; i < kPathStates; ++i) {
    if (states[i] == 0) continue;
    absl::StrAppend(&text, text.empty() ? "" : ", ",
                    std::string(path_state_name(static_cast<PathState>(i))), " ",
                    duration_text(states[i]));
  }
  return text;
}

std::string critical_states_text(const CriticalPath& path) {
  return path_states_text(path.state_sums());
}

std::vector<PathEntry> longest_entries(const CriticalPath& path, uint64_t limit) {
  std::vector<PathEntry> entries(path.sums.begin(), path.sums.end());
  std::stable_sort(entries.begin(), entries.end(),
                   [](const PathEntry& a, const PathEntry& b) {
                     return a.second.time_ns > b.second.time_ns;
                   });
  if (entries.size() > limit) entries.resize(static_cast<size_t>(limit));
  return entries;
}

void write_path_entry_json(const PathEntry& entry, const Replay& replay,
                           FunctionLabels& labels, JsonWriter& json) {
  const auto& [thread, node, state] = entry.first;
  const Definitions& definitions = replay.definitions();
  json.member("process",
              process_label(definitions, definitions.threads()[thread].process));
  write_thread_ids_json(definitions, thread, json);
  json.key("path");
  write_path_json(replay.tree(), node, labels, json);
  json.member("state", path_state_name(state));
  json.member("ns", entry.second.time_ns);
}

// The end of a server comes from outside, so the path to it does not explain its
// duration.
bool explains_duration(const Replay& replay, const Session* session,
                       const Serving& serving) {
  if (session == nullptr || !session->child_wait_status.has_value() ||
      serving.is_server) {
    return false;
  }
  std::vector<ProcessIndex> processes;
  for (const ThreadTree& thread : replay.threads()) {
    processes.push_back(replay.definitions().threads()[thread.thread].process);
  }
  return std::any_of(processes.begin(), processes.end(),
                     [&](ProcessIndex process) { return process != processes.front(); });
}

namespace {

constexpr size_t kCriticalRowsMax = 30;  // if -n does not say how many
constexpr double kCriticalLeastPercent = 1;

// Finds the slowest call of functions, and cuts the log at their begins and ends.
class SlowestCall : public ReplayListener {
 public:
  SlowestCall(ScheduleLog& log, const std::vector<std::string>& functions)
      : log_(log), functions_(functions) {}

  void set_functions(const Functions& functions) { names_ = &functions; }
  const std::optional<PathEnd>& found() const { return found_; }

  uint64_t frame_opened(const FrameInfo& frame) override {
    if (!matches(frame.function)) return 0;
    log_.cut(frame.thread);
    return 1;
  }
  void frame_closed(const FrameInfo& frame, uint64_t token, bool shown) override {
    if (token == 0 || !shown) return;
    log_.cut(frame.thread);
    note(frame);
  }
  void frame_adopted(const FrameInfo& frame) override {
    if (!matches(frame.function)) return;
    log_.cut(frame.thread);
    note(frame);
  }
  void point(const PointInfo& /*point*/) override {}

 private:
  bool matches(FunctionId function) { return functions_.match(function, *names_); }
  void note(const FrameInfo& frame) {
    if (found_.has_value() &&
        frame.stop_ns - frame.start_ns <= found_->stop_ns - found_->start_ns) {
      return;
    }
    found_ = PathEnd{frame.thread, frame.start_ns, frame.stop_ns};
  }

  ScheduleLog& log_;
  FunctionPatterns functions_;
  const Functions* names_ = nullptr;
  std::optional<PathEnd> found_;
};

class CriticalPathView : public View {
 public:
  explicit CriticalPathView(const ViewSettings& settings)
      : options_(settings.options),
        is_of_function_(!settings.functions.empty()),
        call_(log_, settings.functions) {}

  ReplayListener* call_listener() override { return is_of_function_ ? &call_ : nullptr; }
  ScheduleListener* schedule_listener() override { return &log_; }
  void begin_text(Replay& replay, const WriteText& /*write*/) override {
    call_.set_functions(replay.functions());
  }
  void begin_json(Replay& replay, JsonWriter& /*json*/) override {
    call_.set_functions(replay.functions());
  }

  absl::Status write_text(Replay& replay, const WriteText& write) override {
    const std::optional<CriticalPath> path = find(replay);
    if (!path.has_value()) {
      write("\nNothing to show: no thread has time in this stretch.\n");
      return log_.status();
    }
    FunctionLabels labels(replay, options_.lines);
    const uint64_t wall_ns = path->wall_ns();
    const std::string facts =
        absl::StrCat(duration_text(wall_ns), " from ", seconds_text(path->end.start_ns),
                     " to the end of ", is_of_function_ ? "the slowest call in " : "",
                     thread_title(replay.definitions(), path->end.thread), ": ",
                     critical_states_text(*path));
    write("\n" + wrap_line(facts, 2, options_.style) + "\n\n");
    const TimeScale scale = time_scale(wall_ns);
    std::string head;
    append_tinted(
        head, options_.style, Tint::kHead,
        absl::StrCat(columns_of_head(scale), "  State      Of what, and where"));
    if (!write(head + "\n")) return log_.status();
    uint64_t others_ns = 0, others = 0, shown = 0;
    const bool is_cut = options_.limit == UINT64_MAX;
    const uint64_t limit = is_cut ? kCriticalRowsMax : options_.limit;
    for (const CriticalPathRow& row : critical_path_rows(*path, replay, labels)) {
      const bool is_small =
          is_cut && static_cast<double>(row.time_ns) * 100 <
                        static_cast<double>(wall_ns) * kCriticalLeastPercent;
      if (shown >= limit || is_small) {
        others_ns += row.time_ns;
        ++others;
        continue;
      }
      ++shown;
      std::string text =
          columns_of(row.time_ns, wall_ns, scale, path_state_name(row.state));
      append_name(text,
                  row.path.empty() ? row.name : absl::StrCat(row.name, "  ", row.path),
                  "", false, options_.style);
      if (!write(text)) return log_.status();
    }
    if (others != 0) {
      write(columns_of(others_ns, wall_ns, scale, "") + "others, " +
            count_text(others, "row") + "\n");
    }
    return log_.status();
  }

  absl::Status write_json(Replay& replay, JsonWriter& json) override {
    const std::optional<CriticalPath> path = find(replay);
    FunctionLabels labels(replay, options_.lines);
    json.member("start_ns", path.has_value() ? path->end.start_ns : 0);
    json.member("stop_ns", path.has_value() ? path->end.stop_ns : 0);
    json.member("wall_ns", path.has_value() ? path->wall_ns() : 0);
    json.key("critical_path").begin_array();
    if (path.has_value()) write_rows_json(*path, replay, labels, json);
    json.end();
    return log_.status();
  }

 private:
  std::optional<CriticalPath> find(const Replay& replay) {
    const std::optional<PathEnd> end =
        is_of_function_ ? call_.found() : whole_stretch(log_, replay);
    if (!end.has_value()) return std::nullopt;
    return critical_path(log_, replay, *end);
  }

  static std::string columns_of_head(const TimeScale& scale) {
    std::string head;
    append_right(head, scale.unit, 13);
    append_right(head, "%", 8);
    return head;
  }

  static std::string columns_of(uint64_t time_ns, uint64_t wall_ns,
                                const TimeScale& scale, std::string_view state) {
    std::string text;
    append_right(text, scaled_text(time_ns, scale), 13);
    append_right(text, percent_text(time_ns, wall_ns), 8);
    text += "  ";
    append_left(text, std::string(state), 11);
    return text;
  }

  void write_rows_json(const CriticalPath& path, const Replay& replay,
                       FunctionLabels& labels, JsonWriter& json) const {
    for (const PathEntry& entry : longest_entries(path, options_.limit)) {
      if (!json.good()) break;
      json.begin_object();
      write_path_entry_json(entry, replay, labels, json);
      json.end();
    }
  }

  const ViewOptions options_;
  const bool is_of_function_;
  ScheduleLog log_;
  SlowestCall call_;
};

}  // namespace

std::unique_ptr<View> make_critical_path_view(const ViewSettings& settings) {
  return std::make_unique<CriticalPathView>(settings);
}

}  // namespace arctrace::reader
