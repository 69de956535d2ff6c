#include "reader/report/wakers_view.hpp"

#include <absl/container/flat_hash_map.h>
#include <absl/strings/str_cat.h>

#include <algorithm>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "reader/analysis/tree_groups.hpp"
#include "reader/render/report_parts.hpp"
#include "reader/render/thread_labels.hpp"

namespace arctrace::reader {
namespace {

class WakersView : public View, private ScheduleListener {
 public:
  explicit WakersView(const ViewSettings& settings) : options_(settings.options) {}

  ScheduleListener* schedule_listener() override { return this; }
  absl::Status write_text(Replay& replay, const WriteText& write) override;
  absl::Status write_json(Replay& replay, JsonWriter& json) override;

 private:
  // Waker, its node, woken thread, its node, whether an interrupt on the waker's CPU did
  // it.
  using Key = std::tuple<ThreadIndex, NodeIndex, ThreadIndex, NodeIndex, bool>;
  struct Row {
    StateInfo state;  // one of those that the row adds up
    uint64_t wake_ups = 0, blocked_ns = 0;
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
  ++row.wake_ups;
  row.blocked_ns +=
      static_cast<uint64_t>(state.stop_ns) - static_cast<uint64_t>(state.start_ns);
}

// The rows within the limit, in order.
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
    // What an interrupt came upon is not the waker.
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
    append_name(
        line,
        (waker.interrupt ? "Interrupt over " : "") + frames(waker.thread, waker.node), "",
        false, options_.style);
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
