#include "reader/live/live_model.hpp"

#include <absl/strings/ascii.h>
#include <absl/strings/str_cat.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "reader/analysis/function_totals.hpp"
#include "reader/analysis/recorded_state.hpp"
#include "reader/analysis/tree_groups.hpp"
#include "reader/render/labels.hpp"
#include "reader/trace/format_names.hpp"
#include "reader/trace/record.hpp"
#include "reader/trace/text_escape.hpp"

namespace arctrace::reader {
namespace {

constexpr std::string_view kBetween = " > ";  // functions of a path

bool contains_ignoring_case(std::string_view text, std::string_view part) {
  return std::search(text.begin(), text.end(), part.begin(), part.end(),
                     [](char a, char b) {
                       return absl::ascii_tolower(static_cast<unsigned char>(a)) ==
                              absl::ascii_tolower(static_cast<unsigned char>(b));
                     }) != text.end();
}

uint64_t sort_value(const LiveSums& sums, LiveSort sort) {
  switch (sort) {
    case LiveSort::kCpu:
      return sums.cpu_ns;
    case LiveSort::kTotal:
      return sums.total_ns;
    case LiveSort::kCalls:
      return sums.calls;
    default:
      return sums.self_ns;
  }
}

// Returns the beginning of the name that is stored, cut at a whole character.
std::string_view beginning_of(std::string_view name) {
  size_t end = std::min(name.size(), LiveModel::kNameKept);
  while (end < name.size() && (static_cast<unsigned char>(name[end]) & 0xC0) == 0x80) {
    --end;
  }
  return name.substr(0, end);
}

// Returns path_text() without the outermost functions where it would become too long.
std::string short_path_text(const CallTree& tree, NodeIndex node,
                            FunctionLabels& labels) {
  std::vector<std::string_view> names;
  size_t size = 0;
  for (; node != kNoNode && tree[node].parent != kNoNode; node = tree[node].parent) {
    const std::string_view name = beginning_of(labels.text(tree[node].function));
    size += name.size();
    if (!names.empty() && size > LiveModel::kNameKept) break;
    names.push_back(name);
  }
  const bool is_whole = node == kNoNode || tree[node].parent == kNoNode;
  std::string text(is_whole ? "" : "...");
  for (auto name = names.rbegin(); name != names.rend(); ++name) {
    if (!text.empty()) text += kBetween;
    text += *name;
  }
  return text;
}

// Whether the function is on the path.
bool leads_through(std::string_view path, std::string_view function) {
  for (size_t at = path.find(function); at != std::string_view::npos;
       at = path.find(function, at + 1)) {
    const std::string_view before = path.substr(0, at);
    const std::string_view after = path.substr(at + function.size());
    if ((before.empty() || before.ends_with(kBetween)) &&
        (after.empty() || after.starts_with(kBetween))) {
      return true;
    }
  }
  return false;
}

// Returns the calls that began in this tick: those that were open before came as a stack.
uint64_t calls_begun(uint64_t calls, const NodeMarks& marks) {
  return calls - std::min(calls, marks.entry_lost);
}

// Keeps the rows with the most self time, and those with the most total time.
template <class Total, class Self, class All>
void keep_most(std::vector<Total>& totals, Self self_ns, All total_ns) {
  constexpr auto kHalf = static_cast<std::ptrdiff_t>(LiveModel::kRowsKept / 2);
  if (totals.size() <= LiveModel::kRowsKept) return;
  const auto by = [](auto value) {
    return [value](const Total& a, const Total& b) { return value(a) > value(b); };
  };
  const auto middle = totals.begin() + kHalf, end = middle + kHalf;
  std::nth_element(totals.begin(), middle, totals.end(), by(self_ns));
  std::nth_element(middle, end, totals.end(), by(total_ns));
  totals.erase(end, totals.end());
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
  cpu_ns += other.cpu_ns;
  return *this;
}

void LiveModel::begin(const Trace& trace, Replay& replay) {
  clock_ = &trace.clock();
  replay.shown_names().set_full(full_names_);
}

// A record that is older than the tick gets the tick's time.
void LiveModel::after(const Record& record) {
  if (record.type != ARCTRACE_TYPE_MARK) return;
  BodyReader body(record.body);
  const uint32_t size = body.read<arctrace_text_body>().text_size;
  if (new_marks_.size() == kMarksKept) new_marks_.erase(new_marks_.begin());
  new_marks_.push_back(
      {escaped(beginning_of(body.text(size))), clock_->to_ns(record.ticks)});
  ++new_mark_count_;
}

void LiveModel::add_marks() {
  marks_.insert(marks_.end(), std::make_move_iterator(new_marks_.begin()),
                std::make_move_iterator(new_marks_.end()));
  new_marks_.clear();
  while (marks_.size() > kMarksKept) marks_.pop_front();
  mark_count_ += std::exchange(new_mark_count_, 0);
}

void LiveModel::end(const Trace& /*trace*/, Replay& replay, int64_t from_ns,
                    int64_t until_ns, const std::vector<LiveThread>& threads) {
  // The first tick may cover all that the buffer has.
  last_tick_ns_ = until_ns - std::max<int64_t>(from_ns, 0);
  if (is_paused_) return;
  now_ns_ = until_ns;
  add_marks();
  Tick tick;
  tick.duration_ns = last_tick_ns_;
  has_cpu_ = replay.has_dispatches();
  has_ready_ = replay.known_times() == KnownTimes::kReady;
  add_rows(replay, tick);
  if (has_cpu_) add_times(replay, threads, tick);
  ticks_.push_back(std::move(tick));
  if (ticks_.size() > kTicksKept) ticks_.pop_front();
  add_threads(replay, until_ns, threads);
  left_out_.own_filters.clear();
  const RecordedStates states(replay);
  for (const CallsLeftOut& cause : states.causes()) {
    if (!cause.is_filter || cause.is_live) continue;
    left_out_.own_filters.push_back(escaped(beginning_of(cause.what.by)));
  }
}

void LiveModel::add_rows(Replay& replay, Tick& tick) {
  FunctionLabels labels(replay, false);
  const TreeGroups groups(replay, Grouping::kAll);
  for (const TreeGroup& group : groups.groups()) {
    const CallTree& tree = *group.tree;
    std::vector<FunctionTotal> totals =
        function_totals(tree, replay.functions(), group.root, SortKey::kSelf);
    keep_most(
        totals, [](const FunctionTotal& total) { return total.self_ns; },
        [](const FunctionTotal& total) { return total.total_ns; });
    for (const FunctionTotal& total : totals) {
      tick.functions[std::string(beginning_of(labels.text(total.function)))] +=
          {calls_begun(total.calls, total.marks), total.self_ns, total.total_ns,
           total.self_cpu_ns};
    }
    std::vector<NodeIndex> nodes;
    for (NodeIndex node = tree.next_in_preorder(group.root, group.root); node != kNoNode;
         node = tree.next_in_preorder(node, group.root)) {
      nodes.push_back(node);
    }
    keep_most(
        nodes, [&](NodeIndex node) { return tree[node].self_ns; },
        [&](NodeIndex node) { return tree[node].total_ns; });
    for (const NodeIndex node : nodes) {
      tick.paths[short_path_text(tree, node, labels)] +=
          {calls_begun(tree[node].calls, tree.marks(node)), tree[node].self_ns,
           tree[node].total_ns, tree.cpu_self(node).cpu_ns};
    }
  }
}

// Adds the times of the threads that live.
void LiveModel::add_times(const Replay& replay, const std::vector<LiveThread>& threads,
                          Tick& tick) {
  absl::flat_hash_map<ThreadIndex, uint32_t> writers;
  for (const LiveThread& thread : threads) {
    writers[thread.thread] = replay.definitions().threads()[thread.thread].writer;
  }
  for (const ThreadTree& thread : replay.threads()) {
    const auto writer = writers.find(thread.thread);
    if (writer == writers.end()) continue;
    const CpuTime& times = replay.tree().cpu_total(thread.root);
    tick.threads[writer->second] = {replay.tree()[thread.root].total_ns, times.cpu_ns,
                                    times.ready_ns, times.unknown_ns};
  }
}

LiveCpu LiveModel::cpu_of(uint32_t writer, const StateInfo& state,
                          int64_t until_ns) const {
  LiveCpu cpu;
  cpu.source = CpuSource::kKernel;
  cpu.state = run_state_text(state);
  cpu.is_on_cpu = state.state == RunState::kRunning;
  cpu.for_ns = std::max<int64_t>(until_ns - state.start_ns, 0);
  cpu.has_ready = has_ready_;
  for (size_t i = 0; i < ticks_.size(); ++i) {
    const auto found = ticks_[i].threads.find(writer);
    const ThreadTimes times =
        found == ticks_[i].threads.end() ? ThreadTimes{} : found->second;
    cpu.history.push_back(times.wall_ns == 0 ? 0 : times.cpu_ns * 1000 / times.wall_ns);
    if (i < window_begin()) continue;
    cpu.wall_ns += times.wall_ns;
    cpu.cpu_ns += times.cpu_ns;
    cpu.ready_ns += times.ready_ns;
    cpu.unknown_ns += times.unknown_ns;
  }
  return cpu;
}

void LiveModel::add_threads(Replay& replay, int64_t until_ns,
                            const std::vector<LiveThread>& threads) {
  FunctionLabels labels(replay, false);
  threads_.clear();
  for (const LiveThread& thread : threads) {
    LiveThreadRow row;
    const Definitions& definitions = replay.definitions();
    const Thread& facts = definitions.threads()[thread.thread];
    row.title = thread_title(definitions, thread.thread);
    row.pid = definitions.pid_of(thread.thread);
    row.tid = facts.tid;
    if (const Process* process = definitions.process_of(thread.thread)) {
      row.pid_namespace = process->pid_namespace;
    }
    if (thread.state.has_value()) {
      row.cpu = cpu_of(facts.writer, *thread.state, until_ns);
    }
    const std::vector<OpenFrame>& frames = thread.stack.frames;
    for (auto frame = frames.rbegin();
         frame != frames.rend() && row.frames.size() < kFramesKept; ++frame) {
      row.frames.push_back({std::string(beginning_of(labels.text(frame->function))),
                            until_ns - frame->start_ns});
    }
    threads_.push_back(std::move(row));
  }
}

void LiveModel::set_buffer(const BufferState& buffer, uint64_t blocks) {
  const uint32_t off = ARCTRACE_GATE_ALL & ~buffer.gate;
  left_out_.is_all = off == ARCTRACE_GATE_ALL;
  left_out_.classes = off == 0 ? "" : gate_text(off);
  left_out_.live_filter.clear();
  for (const std::string& entry : buffer.filter) {
    const bool is_only = entry.starts_with('+');
    const bool is_marked = is_only || entry.starts_with('-');
    absl::StrAppend(&left_out_.live_filter, left_out_.live_filter.empty() ? "" : " ",
                    is_only     ? "-F "
                    : is_marked ? "-N "
                                : "",
                    escaped(entry.substr(is_marked ? 1 : 0)));
  }
  left_out_.record_filter.clear();
  for (const std::string& entry : buffer.record_filter) {
    left_out_.record_filter.push_back(escaped(entry));
  }
  LiveCounters now;
  for (const BufferState::Slot& slot : buffer.slots) {
    now.records += slot.written_all;
    now.writers += slot.alive ? 1 : 0;
    for (const uint64_t lost : slot.lost) now.lost += lost;
  }
  for (const uint64_t lost : buffer.session_lost) now.lost += lost;
  now.on_cpu = static_cast<uint64_t>(
      std::count_if(threads_.begin(), threads_.end(),
                    [](const LiveThreadRow& row) { return row.cpu.is_on_cpu; }));
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

// Returns the index of the first tick that is in the window.
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
                                     std::string_view filter,
                                     std::string_view through) const {
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
    if (!through.empty() && !leads_through(name, through)) continue;
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
