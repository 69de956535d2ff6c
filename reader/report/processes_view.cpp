#include "reader/report/processes_view.hpp"

#include <absl/strings/str_cat.h>

#include <iterator>

#include "reader/analysis/process_tree.hpp"
#include "reader/render/frame_marks.hpp"
#include "reader/render/report_parts.hpp"
#include "reader/render/session_text.hpp"
#include "reader/report/wait_histograms.hpp"
#include "reader/trace/text_escape.hpp"

namespace arctrace::reader {
namespace {

std::string operation_name(uint32_t operation) {
  constexpr const char* kNames[] = {"read", "write", "flush", "discard"};
  return operation < std::size(kNames) ? kNames[operation] : "other";
}

// "0", or of several runs "0 (498), 1 (2)".
std::string exits_text(const CommandSums& command) {
  std::string text;
  for (const auto& [exit, count] : command.exits) {
    absl::StrAppend(&text, text.empty() ? "" : ", ", exit);
    if (command.exits.size() > 1) absl::StrAppend(&text, " (", count, ")");
  }
  return text.empty() ? "-" : text;
}

// What is not exact, or not known, of the runs' ends; of a row without a time, that says
// it.
std::string ends_text(const CommandSums& command) {
  if (command.wall_ns == 0) return {};
  std::string text;
  if (command.end_within_ns != 0) {
    absl::StrAppend(&text, "  ended up to ", duration_text(command.end_within_ns),
                    " earlier");
  }
  if (command.ends_not_known != 0) {
    absl::StrAppend(&text, text.empty() ? "  " : ", ", "end of ", command.ends_not_known,
                    " not known");
  }
  return text;
}

class ProcessesView : public View {
 public:
  explicit ProcessesView(const ViewSettings& settings) : options_(settings.options) {}

  ReplayListener* call_listener() override { return &waits_; }
  ScheduleListener* schedule_listener() override { return &waits_; }

  absl::Status write_text(Replay& replay, const WriteText& write) override {
    std::string head;
    append_right(head, "Runs", 8);
    append_right(head, "Wall", 13);
    append_right(head, "Longest", 13);
    append_right(head, "On CPU", 13);
    append_right(head, "Exit", 11);
    std::string text = "\n";
    append_tinted(text, options_.style, Tint::kHead, head + "  Command");
    text += '\n';
    if (!write(text)) return absl::OkStatus();
    uint64_t left = options_.limit, hidden = 0;
    for (const CommandSums& command : process_tree(replay)) {
      write_rows(command, 0, replay.has_dispatches(), write, left, hidden);
    }
    write(hidden_rows_text(hidden) + waits_text());
    return absl::OkStatus();
  }

  absl::Status write_json(Replay& replay, JsonWriter& json) override {
    json.key("processes").begin_array();
    for (const CommandSums& command : process_tree(replay)) {
      write_command_json(command, replay.known_times(), json);
    }
    json.end();
    json.key("run_queue").begin_object();
    write_waits_json(waits_.run_queue(), json);
    json.end();
    json.key("disk_requests").begin_array();
    for (const auto& [operation, times] : waits_.requests()) {
      json.begin_object();
      json.member("operation", operation_name(operation));
      write_waits_json(times, json);
      json.end();
    }
    json.end();
    return absl::OkStatus();
  }

 private:
  void write_rows(const CommandSums& command, size_t level, bool has_cpu,
                  const WriteText& write, uint64_t& left, uint64_t& hidden) const {
    if (left == 0) {
      ++hidden;
    } else {
      --left;
      std::string row;
      append_right(row, grouped_text(command.runs), 8);
      // 0: it is not known of any when it ended.
      append_right(row, command.wall_ns == 0 ? "-" : duration_text(command.wall_ns), 13);
      append_right(row,
                   command.runs > 1 && command.wall_ns != 0
                       ? duration_text(command.longest_ns)
                       : "-",
                   13);
      append_right(row, has_cpu ? duration_text(command.cpu.cpu_ns) : "-", 13);
      const std::string exits = exits_text(command);
      append_right(row, command.exits.size() > 1 ? "*" : exits, 11);
      row += "  " + std::string(level * 2, ' ');
      std::string notes;
      if (command.runs == 1) absl::StrAppend(&notes, "  ", command.pid);
      if (command.exits.size() > 1) absl::StrAppend(&notes, "  exit ", exits);
      notes += not_known_text(command.cpu.unknown_ns) + ends_text(command);
      append_name(row, escaped(command.name), notes, false, options_.style);
      write(row);
    }
    for (const CommandSums& child : command.children) {
      write_rows(child, level + 1, has_cpu, write, left, hidden);
    }
  }

  static void append_times(std::string& row, const DurationHistogram& times) {
    append_right(row, grouped_text(times.count()), 10);
    append_right(row, call_time_text(times.average_ns()), 13);
    for (const uint64_t per_mille : {uint64_t{500}, uint64_t{990}}) {
      const auto quantile = times.quantile_ns(per_mille);
      append_right(row, quantile.has_value() ? call_time_text(*quantile) : "-", 13);
    }
    append_right(row, call_time_text(times.max_ns()), 13);
  }

  std::string waits_text() const {
    if (waits_.run_queue().count() == 0 && waits_.requests().empty()) return {};
    std::string head;
    append_right(head, "Count", 10);
    append_right(head, "Avg", 13);
    append_right(head, "p50", 13);
    append_right(head, "p99", 13);
    append_right(head, "Max", 13);
    std::string text = "\n";
    append_tinted(text, options_.style, Tint::kHead, head + "  Waits");
    text += '\n';
    if (waits_.run_queue().count() != 0) {
      append_times(text, waits_.run_queue());
      text += "  for a CPU\n";
    }
    for (const auto& [operation, times] : waits_.requests()) {
      append_times(text, times);
      absl::StrAppend(&text, "  disk, ", operation_name(operation), "\n");
    }
    return text;
  }

  static void write_waits_json(const DurationHistogram& times, JsonWriter& json) {
    json.member("count", times.count());
    write_times_json(times.count() == 0 ? nullptr : &times, json);
  }

  static void write_command_json(const CommandSums& command, KnownTimes known,
                                 JsonWriter& json) {
    json.begin_object();
    json.member("name", command.name);
    if (command.runs == 1) json.member("pid", command.pid);
    json.member("runs", command.runs);
    json.member("threads", command.threads);
    json.member("wall_ns", command.wall_ns);
    json.member("longest_ns", command.longest_ns);
    json.member("end_within_ns", command.end_within_ns);
    json.member("ends_not_known", command.ends_not_known);
    write_cpu_json(command.cpu, known, json);
    json.key("exits").begin_object();
    for (const auto& [exit, count] : command.exits) json.member(exit, count);
    json.end();
    json.key("children").begin_array();
    for (const CommandSums& child : command.children) {
      write_command_json(child, known, json);
    }
    json.end();
    json.end();
  }

  const ViewOptions options_;
  WaitHistograms waits_;
};

}  // namespace

std::unique_ptr<View> make_processes_view(const ViewSettings& settings) {
  return std::make_unique<ProcessesView>(settings);
}

}  // namespace arctrace::reader
