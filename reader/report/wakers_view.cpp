#include "reader/report/wakers_view.hpp"

#include <absl/strings/str_cat.h>

#include <algorithm>

#include "reader/analysis/tree_groups.hpp"
#include "reader/render/report_parts.hpp"
#include "reader/render/thread_paths.hpp"

namespace arctrace::reader {
namespace {

void write_place_json(const char* key, ThreadIndex thread, NodeIndex node, Replay& replay,
                      FunctionNames& names, JsonWriter& json) {
  const Definitions& definitions = replay.definitions();
  json.key(key).begin_object();
  json.member("pid", definitions.pid_of(thread));
  json.member("tid", definitions.threads()[thread].tid);
  json.member("name", thread_label(definitions, thread));
  json.key("path");
  write_path_json(replay.tree(), node, names, json);
  json.end();
}

}  // namespace

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

std::vector<WakersView::Row> WakersView::rows() const {
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

void WakersView::write_text(Replay& replay, const WriteText& write) {
  FunctionNames names(replay, options_);
  std::string head = "\n";
  append_tinted(head, options_.style, Tint::kHead,
                "    Wake-ups      Blocked  Who woke whom");
  if (!write(head + "\n")) return;
  const std::vector<Row> shown = rows();
  for (const Row& row : shown) {
    const auto place = [&](ThreadIndex thread, NodeIndex node) {
      const std::string path = path_text(replay.tree(), node, names);
      return absl::StrCat(thread_title(replay.definitions(), thread),
                          path.empty() ? "" : ": ", path);
    };
    const Waker& waker = row.state.waker;
    std::string line;
    append_right(line, absl::StrCat(row.wake_ups), 12);
    append_right(line, duration_text(row.blocked_ns), 13);
    line += "  ";
    append_name(line, place(waker.thread, waker.node),
                waker.interrupt ? " [interrupt]" : "", false, options_.style);
    std::string woken(27, ' ');
    woken += "-> ";
    append_name(woken, place(row.state.thread, row.state.node), "", false,
                options_.style);
    if (!write(line + woken)) return;
  }
  write(left_out_text(by_key_.size() - shown.size()));
}

void WakersView::write_json(Replay& replay, JsonWriter& json) {
  FunctionNames names(replay, options_);
  json.key("wakers").begin_array();
  for (const Row& row : rows()) {
    const Waker& waker = row.state.waker;
    json.begin_object();
    json.member("wake_ups", row.wake_ups);
    json.member("blocked_ns", row.blocked_ns);
    json.member("from_interrupt", waker.interrupt);
    write_place_json("waker", waker.thread, waker.node, replay, names, json);
    write_place_json("woken", row.state.thread, row.state.node, replay, names, json);
    json.end();
    if (!json.good()) break;
  }
  json.end();
}

}  // namespace arctrace::reader
