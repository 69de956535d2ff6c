// The view "processes": the tree of commands, and how long threads and requests waited.
#include <absl/container/btree_map.h>
#include <absl/container/flat_hash_map.h>
#include <absl/strings/str_cat.h>
#include <arctrace/format.h>

#include <cstdint>
#include <iterator>
#include <utility>

#include "reader/analysis/function_times.hpp"
#include "reader/analysis/process_tree.hpp"
#include "reader/render/labels.hpp"
#include "reader/render/report_parts.hpp"
#include "reader/render/session_text.hpp"
#include "reader/replay/listener.hpp"
#include "reader/report/views.hpp"
#include "reader/trace/text_escape.hpp"
#include "src/base/untrusted_bytes.hpp"

namespace arctrace::reader {
namespace {

// How long woken threads waited for a CPU, and how long requests to block devices took.
// Memory is bounded by the number of requests that are under way, and by kRequestsMax.
class WaitHistograms : public ReplayListener, public ScheduleListener {
 public:
  // The time from being woken to having a CPU.
  const DurationHistogram& run_queue() const { return run_queue_; }
  // The time of whole requests, by the kernel's operation (0 read, 1 write, 2 flush, 3
  // discard).
  const absl::btree_map<uint32_t, DurationHistogram>& requests() const {
    return requests_;
  }

  uint64_t frame_opened(const FrameInfo& /*frame*/) override { return 0; }
  void frame_closed(const FrameInfo& /*frame*/, uint64_t /*token*/,
                    bool /*shown*/) override {}
  void frame_adopted(const FrameInfo& /*frame*/) override {}
  void point(const PointInfo& point) override;
  void state_ended(const StateInfo& state) override;

 private:
  static constexpr size_t kRequestsMax = 65536;  // whose ends are waited for

  struct Request {
    int64_t since_ns;
    uint32_t bytes_left;
  };

  DurationHistogram run_queue_;
  absl::btree_map<uint32_t, DurationHistogram> requests_;
  absl::flat_hash_map<std::pair<uint32_t, uint64_t>, Request> open_;  // device, sector
};

void WaitHistograms::state_ended(const StateInfo& state) {
  if (state.state != RunState::kReady || state.preempted) return;
  run_queue_.add(static_cast<uint64_t>(state.stop_ns) -
                 static_cast<uint64_t>(state.start_ns));
}

// A request may be done in parts: then the sectors of the rest begin later.
void WaitHistograms::point(const PointInfo& point) {
  if (point.kind != PointInfo::Kind::kRecord) return;
  if (point.record->type == ARCTRACE_TYPE_BLOCK_IO) {
    const auto io = load_part_untrusted<arctrace_block_io_body>(point.record->body);
    if (open_.size() < kRequestsMax) {
      open_[{io.device, io.sector}] = {point.time_ns, io.bytes};
    }
    return;
  }
  if (point.record->type != ARCTRACE_TYPE_BLOCK_IO_END) return;
  const auto io = load_part_untrusted<arctrace_block_io_end_body>(point.record->body);
  const auto found = open_.find({io.device, io.sector});
  if (found == open_.end()) return;
  Request request = found->second;
  open_.erase(found);
  if (io.bytes < request.bytes_left) {
    request.bytes_left -= io.bytes;
    open_[{io.device, io.sector + io.bytes / 512}] = request;
  } else if (point.time_ns >= request.since_ns) {
    requests_[io.operation].add(static_cast<uint64_t>(point.time_ns) -
                                static_cast<uint64_t>(request.since_ns));
  }
}

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

// Returns what is not exact, or not known, of the runs' ends. If the row has no time,
// that says enough.
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
      // 0: no run's end is known.
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
      text += "  for a CPU, once woken (preempted threads are not counted)\n";
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
