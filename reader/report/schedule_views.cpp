// The views "threads" and "wakers": what threads did over time, and which woke which.
#include <absl/container/btree_map.h>
#include <absl/container/flat_hash_map.h>
#include <absl/strings/str_cat.h>
#include <arctrace/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "reader/analysis/function_totals.hpp"
#include "reader/analysis/path_state.hpp"
#include "reader/analysis/tree_groups.hpp"
#include "reader/render/labels.hpp"
#include "reader/render/report_parts.hpp"
#include "reader/render/text_style.hpp"
#include "reader/report/views.hpp"

namespace arctrace::reader {
namespace {

uint64_t duration_of(const StateInfo& state) {
  return static_cast<uint64_t>(state.stop_ns) - static_cast<uint64_t>(state.start_ns);
}

const char* state_name(RunState state) {
  switch (state) {
    case RunState::kRunning:
      return "running";
    case RunState::kReady:
      return "ready";
    case RunState::kBlocked:
      return "blocked";
    case RunState::kNotKnown:
      break;
  }
  return "not known";
}

// Returns why a ready thread was not running before.
const char* ready_reason(const StateInfo& state) {
  if (state.interrupted) return "interrupted";
  return state.preempted ? "preempted" : "woken";
}

// Returns the frames that the thread was in, and the thread that woke it with its frames.
std::string whereabouts_of(const StateInfo& state, Replay& replay,
                           FunctionLabels& labels) {
  if (state.state == RunState::kRunning) return {};
  std::string text = path_text(replay.tree(), state.node, labels);
  if (state.waker.thread == kNoIndex) return text;
  absl::StrAppend(&text, text.empty() ? "" : "; ", "woken by ",
                  may_be_fault(replay, state.waker) ? "an interrupt or a fault of "
                  : state.waker.interrupt           ? "an interrupt of "
                                                    : "",
                  thread_title(replay.definitions(), state.waker.thread));
  const std::string where = path_text(replay.tree(), state.waker.node, labels);
  if (!where.empty()) absl::StrAppend(&text, " in ", where);
  return text;
}

void write_state_json(const StateInfo& state, Replay& replay, FunctionLabels& labels,
                      JsonWriter& json) {
  json.begin_object();
  json.member("start_ns", state.start_ns);
  json.member("duration_ns", duration_of(state));
  json.member("state", state_name(state.state));
  if (state.state == RunState::kReady) json.member("reason", ready_reason(state));
  if (state.state == RunState::kBlocked && state.task_state != ARCTRACE_SWITCH_UNKNOWN) {
    json.member("task_state", state.task_state);
  }
  if (state.state != RunState::kRunning) {
    json.key("path");
    write_path_json(replay.tree(), state.node, labels, json);
  }
  if (const Thread* waker = replay.definitions().thread(state.waker.thread)) {
    json.member("waker_pid", replay.definitions().pid_of(state.waker.thread));
    json.member("waker_tid", waker->tid);
    json.key("waker_path");
    write_path_json(replay.tree(), state.waker.node, labels, json);
    if (state.waker.interrupt) json.member("from_interrupt", true);
  }
  json.end();
}

class ThreadsView : public View, private ScheduleListener {
 public:
  explicit ThreadsView(const ViewSettings& settings) : options_(settings.options) {}

  ScheduleListener* schedule_listener() override { return this; }
  absl::Status write_text(Replay& replay, const WriteText& write) override;
  absl::Status write_json(Replay& replay, JsonWriter& json) override;

 private:
  struct States {
    std::vector<StateInfo> rows;
    uint64_t hidden = 0;
    uint64_t running_ns = 0, blocked_ns = 0, unknown_ns = 0;
    uint64_t ready_ns = 0, preempted_ns = 0, interrupted_ns = 0;  // parts of ready_ns
    uint64_t own_work_ns = 0;  // the tracer's; a part of the others
  };

  void state_ended(const StateInfo& state) override;
  void order_rows();
  void add_own_work(const Replay& replay);
  std::string head_text(const States& thread, ThreadIndex index,
                        const Replay& replay) const;

  const ViewOptions options_;
  absl::btree_map<ThreadIndex, States> threads_;
};

void ThreadsView::state_ended(const StateInfo& state) {
  States& thread = threads_[state.thread];
  const uint64_t duration = duration_of(state);
  switch (state.state) {
    case RunState::kRunning:
      thread.running_ns += duration;
      break;
    case RunState::kReady:
      thread.ready_ns += duration;
      if (state.interrupted) {
        thread.interrupted_ns += duration;
      } else if (state.preempted) {
        thread.preempted_ns += duration;
      }
      break;
    case RunState::kBlocked:
      thread.blocked_ns += duration;
      break;
    case RunState::kNotKnown:
      thread.unknown_ns += duration;
      break;
  }
  if (options_.sort == SortKey::kEntry && thread.rows.size() >= options_.limit) {
    ++thread.hidden;
  } else {
    thread.rows.push_back(state);
  }
}

void ThreadsView::add_own_work(const Replay& replay) {
  for (const ThreadTree& tree : replay.threads()) {
    const auto found = threads_.find(tree.thread);
    if (found == threads_.end()) continue;
    found->second.own_work_ns =
        own_work_ps(replay.tree(), replay.functions(), tree.root) / 1000;
  }
}

void ThreadsView::order_rows() {
  if (options_.sort == SortKey::kEntry) return;
  for (auto& [index, thread] : threads_) {
    std::stable_sort(thread.rows.begin(), thread.rows.end(),
                     [](const StateInfo& a, const StateInfo& b) {
                       return duration_of(a) > duration_of(b);
                     });
    if (thread.rows.size() <= options_.limit) continue;
    thread.hidden = thread.rows.size() - options_.limit;
    thread.rows.resize(static_cast<size_t>(options_.limit));
  }
}

std::string ThreadsView::head_text(const States& thread, ThreadIndex index,
                                   const Replay& replay) const {
  const bool has_ready = replay.known_times() == KnownTimes::kReady;
  const uint64_t all_ns =
      thread.running_ns + thread.ready_ns + thread.blocked_ns + thread.unknown_ns;
  const auto part = [&](const char* name, uint64_t part_ns) {
    std::string text = absl::StrCat(name, " ", duration_text(part_ns));
    if (part_ns != 0) {
      absl::StrAppend(&text, " (", percent_text(part_ns, all_ns), " %)");
    }
    return text;
  };
  std::string text;
  append_tinted(text, options_.style, Tint::kHead,
                thread_title(replay.definitions(), index));
  absl::StrAppend(&text, ": ", part("running", thread.running_ns), ", ");
  if (has_ready) absl::StrAppend(&text, part("ready", thread.ready_ns), ", of which ");
  absl::StrAppend(&text, part("preempted", thread.preempted_ns), ", ");
  if (thread.interrupted_ns != 0) {
    absl::StrAppend(&text, part("interrupted", thread.interrupted_ns), ", ");
  }
  absl::StrAppend(&text,
                  part(has_ready ? "blocked" : "blocked or woken", thread.blocked_ns));
  if (thread.unknown_ns != 0) {
    absl::StrAppend(&text, ", ", part("not known", thread.unknown_ns));
  }
  if (thread.own_work_ns != 0) {
    absl::StrAppend(&text, "; ", duration_text(thread.own_work_ns),
                    " of this is arctrace's own work, which is in no sum of other views");
  }
  text = "\n" + wrap_line(text, 2, options_.style) + "\n";
  append_tinted(text, options_.style, Tint::kHead,
                "          Start     Duration  State               Where");
  return text += '\n';
}

absl::Status ThreadsView::write_text(Replay& replay, const WriteText& write) {
  order_rows();
  add_own_work(replay);
  FunctionLabels labels(replay, options_.lines);
  for (const auto& [index, thread] : threads_) {
    if (!write(head_text(thread, index, replay))) return absl::OkStatus();
    for (const StateInfo& state : thread.rows) {
      std::string row;
      append_right(row, seconds_text(state.start_ns), 15);
      append_right(row, duration_text(duration_of(state)), 13);
      row += "  ";
      append_left(row,
                  state.state == RunState::kReady
                      ? absl::StrCat("ready, ", ready_reason(state))
                      : state_name(state.state),
                  20);
      append_name(row, whereabouts_of(state, replay, labels), "", false, options_.style);
      if (!write(row)) return absl::OkStatus();
    }
    if (!write(hidden_rows_text(thread.hidden))) return absl::OkStatus();
  }
  return absl::OkStatus();
}

absl::Status ThreadsView::write_json(Replay& replay, JsonWriter& json) {
  order_rows();
  add_own_work(replay);
  FunctionLabels labels(replay, options_.lines);
  const Definitions& definitions = replay.definitions();
  json.key("threads").begin_array();
  for (const auto& [index, thread] : threads_) {
    json.begin_object();
    write_thread_ids_json(definitions, index, json);
    json.member("name", thread_label(definitions, index));
    json.member("running_ns", thread.running_ns);
    if (replay.known_times() == KnownTimes::kReady) {
      json.member("ready_ns", thread.ready_ns);
    }
    json.member("preempted_ns", thread.preempted_ns);
    if (thread.interrupted_ns != 0) {
      json.member("interrupted_ns", thread.interrupted_ns);
    }
    json.member("blocked_ns", thread.blocked_ns);
    if (thread.unknown_ns != 0) json.member("not_known_ns", thread.unknown_ns);
    if (thread.own_work_ns != 0) json.member("arctrace_ns", thread.own_work_ns);
    json.key("states").begin_array();
    for (const StateInfo& state : thread.rows) {
      write_state_json(state, replay, labels, json);
      if (!json.good()) break;
    }
    json.end();
    json.end();
  }
  json.end();
  return absl::OkStatus();
}

}  // namespace

std::unique_ptr<View> make_threads_view(const ViewSettings& settings) {
  return std::make_unique<ThreadsView>(settings);
}

namespace {

class WakersView : public View, private ScheduleListener {
 public:
  explicit WakersView(const ViewSettings& settings) : options_(settings.options) {}

  ScheduleListener* schedule_listener() override { return this; }
  absl::Status write_text(Replay& replay, const WriteText& write) override;
  absl::Status write_json(Replay& replay, JsonWriter& json) override;

 private:
  // The waker, its node, the woken thread, its node, and whether an interrupt on the
  // waker's CPU woke it.
  using Key = std::tuple<ThreadIndex, NodeIndex, ThreadIndex, NodeIndex, bool>;
  struct Row {
    StateInfo state;  // one of those that the row adds up
    uint64_t wake_ups = 0, blocked_ns = 0;
    // One of the interrupts of which the records do not tell the kind.
    std::optional<Waker> ambiguous;
  };

  void state_ended(const StateInfo& state) override;
  std::vector<Row> shown_rows() const;

  const ViewOptions options_;
  absl::flat_hash_map<Key, Row> by_key_;
};

void WakersView::state_ended(const StateInfo& state) {
  const Waker& waker = state.waker;
  if (waker.thread == kNoIndex) return;
  Row& row =
      by_key_[{waker.thread, waker.node, state.thread, state.node, waker.interrupt}];
  row.state = state;
  if (waker.interrupt && (waker.context & ARCTRACE_WAKING_TIMER) == 0 &&
      ARCTRACE_WAKING_VECTOR(waker.context) == 0) {
    row.ambiguous = waker;
  }
  ++row.wake_ups;
  row.blocked_ns +=
      static_cast<uint64_t>(state.stop_ns) - static_cast<uint64_t>(state.start_ns);
}

// Returns the rows within the limit, in order.
std::vector<WakersView::Row> WakersView::shown_rows() const {
  std::vector<std::pair<Key, Row>> all(by_key_.begin(), by_key_.end());
  const bool by_count = options_.sort == SortKey::kCalls;
  std::sort(all.begin(), all.end(), [by_count](const auto& a, const auto& b) {
    const uint64_t x = by_count ? a.second.wake_ups : a.second.blocked_ns;
    const uint64_t y = by_count ? b.second.wake_ups : b.second.blocked_ns;
    return x != y ? x > y : a.first < b.first;
  });
  if (all.size() > options_.limit) all.resize(static_cast<size_t>(options_.limit));
  std::vector<Row> shown;
  shown.reserve(all.size());
  for (const auto& [key, row] : all) shown.push_back(row);
  return shown;
}

absl::Status WakersView::write_text(Replay& replay, const WriteText& write) {
  FunctionLabels labels(replay, options_.lines);
  std::string head = "\n";
  append_tinted(head, options_.style, Tint::kHead,
                "    Wake-ups      Blocked  Waker and woken thread");
  if (!write(head + "\n")) return absl::OkStatus();
  const std::vector<Row> shown = shown_rows();
  for (const Row& row : shown) {
    // The frames upon which an interrupt came are not the waker.
    const auto frames = [&](ThreadIndex thread, NodeIndex node) {
      const std::string path = path_text(replay.tree(), node, labels);
      return absl::StrCat(thread_title(replay.definitions(), thread),
                          path.empty() ? "" : ": ", path);
    };
    const Waker& waker = row.state.waker;
    std::string line;
    append_right(line, grouped_text(row.wake_ups), 12);
    append_right(line, duration_text(row.blocked_ns), 13);
    line += "  ";
    const bool is_ambiguous =
        row.ambiguous.has_value() && may_be_fault(replay, *row.ambiguous);
    const std::string by = is_ambiguous      ? "Interrupt or fault over "
                           : waker.interrupt ? "Interrupt over "
                                             : "";
    append_name(line, by + frames(waker.thread, waker.node), "", false, options_.style);
    std::string woken(27, ' ');
    woken += "-> ";
    append_name(woken, frames(row.state.thread, row.state.node), "", false,
                options_.style);
    if (!write(line + woken)) return absl::OkStatus();
  }
  write(hidden_rows_text(by_key_.size() - shown.size()));
  return absl::OkStatus();
}

void write_frames_json(const char* key, ThreadIndex thread, NodeIndex node,
                       Replay& replay, FunctionLabels& labels, JsonWriter& json) {
  json.key(key).begin_object();
  write_thread_ids_json(replay.definitions(), thread, json);
  json.member("name", thread_label(replay.definitions(), thread));
  json.key("path");
  write_path_json(replay.tree(), node, labels, json);
  json.end();
}

absl::Status WakersView::write_json(Replay& replay, JsonWriter& json) {
  FunctionLabels labels(replay, options_.lines);
  json.key("wakers").begin_array();
  for (const Row& row : shown_rows()) {
    const Waker& waker = row.state.waker;
    json.begin_object();
    json.member("wake_ups", row.wake_ups);
    json.member("blocked_ns", row.blocked_ns);
    json.member("from_interrupt", waker.interrupt);
    write_frames_json("waker", waker.thread, waker.node, replay, labels, json);
    write_frames_json("woken", row.state.thread, row.state.node, replay, labels, json);
    json.end();
    if (!json.good()) break;
  }
  json.end();
  return absl::OkStatus();
}

}  // namespace

std::unique_ptr<View> make_wakers_view(const ViewSettings& settings) {
  return std::make_unique<WakersView>(settings);
}

}  // namespace arctrace::reader
