#include "reader/live/live_model.hpp"

#include <absl/strings/ascii.h>

#include <algorithm>
#include <utility>

#include "reader/analysis/function_totals.hpp"
#include "reader/analysis/tree_groups.hpp"
#include "reader/render/function_labels.hpp"
#include "reader/render/thread_labels.hpp"

namespace arctrace::reader {
namespace {

bool contains_ignoring_case(std::string_view text, std::string_view part) {
  return std::search(text.begin(), text.end(), part.begin(), part.end(),
                     [](char a, char b) {
                       return absl::ascii_tolower(static_cast<unsigned char>(a)) ==
                              absl::ascii_tolower(static_cast<unsigned char>(b));
                     }) != text.end();
}

uint64_t sort_value(const LiveSums& sums, LiveSort sort) {
  switch (sort) {
    case LiveSort::kTotal:
      return sums.total_ns;
    case LiveSort::kCalls:
      return sums.calls;
    default:
      return sums.self_ns;
  }
}

double per_second(uint64_t now, uint64_t before, int64_t duration_ns) {
  if (now <= before || duration_ns <= 0) return 0;
  return static_cast<double>(now - before) * 1e9 / static_cast<double>(duration_ns);
}

}  // namespace

LiveSums& LiveSums::operator+=(const LiveSums& other) {
  calls += other.calls;
  self_ns += other.self_ns;
  total_ns += other.total_ns;
  return *this;
}

void LiveModel::begin(const Trace& /*trace*/, Replay& /*replay*/) {}

void LiveModel::end(const Trace& /*trace*/, Replay& replay, int64_t from_ns,
                    int64_t until_ns, const std::vector<LiveThread>& threads) {
  // The first tick may be about all that there is.
  last_tick_ns_ = until_ns - std::max<int64_t>(from_ns, 0);
  if (is_paused_) return;
  FunctionLabels labels(replay, false);
  Tick tick;
  tick.duration_ns = last_tick_ns_;
  const TreeGroups groups(replay, Grouping::kAll);
  for (const TreeGroup& group : groups.groups()) {
    const CallTree& tree = *group.tree;
    for (const FunctionTotal& total :
         function_totals(tree, replay.functions(), group.root, SortKey::kBase)) {
      tick.functions[labels.text(total.function)] +=
          {total.calls, total.base_ns, total.cum_ns};
    }
    for (NodeIndex node = tree.next_in_preorder(group.root, group.root); node != kNoNode;
         node = tree.next_in_preorder(node, group.root)) {
      tick.paths[path_text(tree, node, labels)] +=
          {tree[node].calls, tree[node].base_ns, tree[node].cum_ns};
    }
  }
  ticks_.push_back(std::move(tick));
  if (ticks_.size() > kTicksKept) ticks_.pop_front();
  add_threads(replay, until_ns, threads);
}

void LiveModel::add_threads(Replay& replay, int64_t until_ns,
                            const std::vector<LiveThread>& threads) {
  FunctionLabels labels(replay, false);
  threads_.clear();
  for (const LiveThread& thread : threads) {
    LiveThreadRow row;
    row.title = thread_title(replay.definitions(), thread.thread);
    const std::vector<OpenFrame>& frames = thread.stack.frames;
    for (auto frame = frames.rbegin(); frame != frames.rend(); ++frame) {
      row.frames.push_back({labels.text(frame->function), until_ns - frame->start_ns});
    }
    threads_.push_back(std::move(row));
  }
}

void LiveModel::set_buffer(const BufferState& buffer, uint64_t blocks) {
  LiveCounters now;
  for (const BufferState::Slot& slot : buffer.slots) {
    now.records += slot.written_all;
    now.writers += slot.alive ? 1 : 0;
    for (const uint64_t lost : slot.lost) now.lost += lost;
  }
  for (const uint64_t lost : buffer.session_lost) now.lost += lost;
  now.blocks = blocks;
  for (size_t phase = 0; phase < buffer.blocks_by_phase.size(); ++phase) {
    if (phase != ARCTRACE_PHASE_FREE) now.blocks_used += buffer.blocks_by_phase[phase];
  }
  if (std::exchange(has_counters_, true)) {
    now.records_per_second = per_second(now.records, counters_.records, last_tick_ns_);
    now.lost_per_second = per_second(now.lost, counters_.lost, last_tick_ns_);
  }
  counters_ = now;
}

// The first of the ticks that are in the window.
size_t LiveModel::window_begin() const {
  size_t begin = ticks_.size();
  for (int64_t left = window_ns_; begin > 0 && left > 0; --begin) {
    left -= ticks_[begin - 1].duration_ns;
  }
  return begin;
}

int64_t LiveModel::window_ns() const {
  int64_t sum = 0;
  for (size_t i = window_begin(); i < ticks_.size(); ++i) sum += ticks_[i].duration_ns;
  return sum;
}

std::vector<LiveRow> LiveModel::rows(LiveTable table, LiveSort sort,
                                     std::string_view filter) const {
  const auto of = [&](const Tick& tick) -> const Table& {
    return table == LiveTable::kFunctions ? tick.functions : tick.paths;
  };
  absl::flat_hash_map<std::string_view, LiveSums> sums;
  for (size_t i = window_begin(); i < ticks_.size(); ++i) {
    for (const auto& [name, part] : of(ticks_[i])) sums[name] += part;
  }
  std::vector<LiveRow> rows;
  for (const auto& [name, sum] : sums) {
    if (!contains_ignoring_case(name, filter)) continue;
    LiveRow row{std::string(name), sum, {}};
    for (const Tick& tick : ticks_) {
      const auto found = of(tick).find(row.name);
      row.history.push_back(found == of(tick).end() ? 0 : found->second.self_ns);
    }
    rows.push_back(std::move(row));
  }
  std::sort(rows.begin(), rows.end(), [sort](const LiveRow& a, const LiveRow& b) {
    const uint64_t x = sort_value(a.sums, sort), y = sort_value(b.sums, sort);
    return sort != LiveSort::kName && x != y ? x > y : a.name < b.name;
  });
  return rows;
}

}  // namespace arctrace::reader
