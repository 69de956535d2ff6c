#include "reader/ui/model/page_json.hpp"

#include <absl/container/flat_hash_map.h>
#include <absl/strings/str_cat.h>

#include <algorithm>
#include <string>
#include <vector>

#include "reader/analysis/function_kinds.hpp"
#include "reader/render/labels.hpp"
#include "reader/render/session_text.hpp"
#include "reader/report/summary_lines.hpp"
#include "reader/trace/text_escape.hpp"

namespace arctrace::reader {
namespace {

// Selects the nodes of a tree that are shown: those with some part in the time of all, or
// in the calls.
class NodeFilter {
 public:
  NodeFilter(const TreeGroups& groups, size_t max_nodes) {
    for (const TreeGroup& group : groups.groups()) {
      for_nodes(group,
                [&](NodeIndex node) { sums_.push_back((*group.tree)[node].total_ns); });
    }
    if (sums_.size() <= max_nodes) return;
    const auto last = sums_.end() - static_cast<std::ptrdiff_t>(max_nodes);
    std::nth_element(sums_.begin(), last, sums_.end());
    least_ns_ = *last + 1;
  }

  bool shows(const CallTree& tree, NodeIndex node) const {
    return tree[node].total_ns >= least_ns_;
  }

  template <class Visit>
  static void for_nodes(const TreeGroup& group, const Visit& visit) {
    for (NodeIndex node = group.root; node != kNoNode;
         node = group.tree->next_in_preorder(node, group.root)) {
      visit(node);
    }
  }

 private:
  std::vector<uint64_t> sums_;
  uint64_t least_ns_ = 0;
};

// Writes the nodes of one group.
class FlameNodes {
 public:
  FlameNodes(const TreeGroup& group, const NodeFilter& filter,
             std::span<const FunctionId> ids, JsonWriter& json)
      : tree_(*group.tree), filter_(filter), ids_(ids), json_(json) {}

  void write(NodeIndex node) {
    const CallNode& facts = tree_[node];
    while (!path_.empty() && path_.back() != facts.parent) path_.pop_back();
    shown_ = std::min(shown_, path_.size());
    const bool is_shown =
        path_.empty() || (shown_ == path_.size() && filter_.shows(tree_, node));
    path_.push_back(node);
    if (!is_shown) return add_hidden(node);
    write_hidden();
    json_.value(shown_);
    json_.value(int64_t{id_on_page(facts.function, ids_)});
    json_.value(facts.self_ns);
    json_.value(tree_.cpu_self(node).off_ns);
    json_.value(tree_.cpu_self(node).unknown_ns);
    json_.value(shown_ == 0 ? 0 : facts.calls);
    ++shown_;
  }

  // Writes the hidden nodes below the last node as one node.
  void write_hidden() {
    if (hidden_depth_ == 0) return;
    json_.value(hidden_depth_);
    json_.value(-1);
    json_.value(hidden_self_ns_);
    json_.value(hidden_off_ns_);
    json_.value(hidden_unknown_ns_);
    json_.value(hidden_calls_);
    hidden_depth_ = 0;
    hidden_self_ns_ = hidden_off_ns_ = hidden_unknown_ns_ = hidden_calls_ = 0;
  }

 private:
  void add_hidden(NodeIndex node) {
    if (hidden_depth_ != shown_) write_hidden();
    hidden_depth_ = shown_;
    hidden_self_ns_ += tree_[node].self_ns;
    hidden_off_ns_ += tree_.cpu_self(node).off_ns;
    hidden_unknown_ns_ += tree_.cpu_self(node).unknown_ns;
    hidden_calls_ += tree_[node].calls;
  }

  const CallTree& tree_;
  const NodeFilter& filter_;
  const std::span<const FunctionId> ids_;
  JsonWriter& json_;
  std::vector<NodeIndex> path_;
  size_t shown_ = 0;  // the first nodes of the path, which are shown
  size_t hidden_depth_ = 0;
  uint64_t hidden_self_ns_ = 0, hidden_off_ns_ = 0, hidden_unknown_ns_ = 0;
  uint64_t hidden_calls_ = 0;
};

}  // namespace

FunctionId id_on_page(FunctionId function, std::span<const FunctionId> ids) {
  return function < ids.size() ? ids[function] : function;
}

void write_lines_json(const char* name, const std::vector<std::string>& lines,
                      JsonWriter& json) {
  json.key(name).begin_array();
  for (const std::string& line : lines) json.value(safe_text(line));
  json.end();
}

void write_counts_json(const ProcessesAndThreads& counts, JsonWriter& json) {
  json.key("counts").begin_object();
  json.member("processes", counts.processes);
  json.member("threads", counts.threads);
  json.end();
}

void write_off_json(const CpuTime& cpu, JsonWriter& json) {
  json.member("off_ns", cpu.off_ns);
  json.member("ready_ns", cpu.ready_ns);
  json.member("not_known_ns", cpu.unknown_ns);
}

int64_t plus(int64_t time_ns, uint64_t more_ns) {
  const auto more = static_cast<int64_t>(std::min<uint64_t>(more_ns, INT64_MAX));
  return time_ns > INT64_MAX - more ? INT64_MAX : time_ns + more;
}

int64_t minus(int64_t time_ns, uint64_t less_ns) {
  const auto less = static_cast<int64_t>(std::min<uint64_t>(less_ns, INT64_MAX));
  return time_ns < INT64_MIN + less ? INT64_MIN : time_ns - less;
}

Times around(Times times) {
  const uint64_t width_ns =
      static_cast<uint64_t>(times.until_ns) - static_cast<uint64_t>(times.from_ns);
  return {minus(times.from_ns, width_ns), plus(times.until_ns, width_ns)};
}

Times times_of(const Replay& replay) {
  if (replay.threads().empty()) return {};
  Times times{INT64_MAX, INT64_MIN};
  for (const ThreadTree& thread : replay.threads()) {
    times.from_ns = std::min(times.from_ns, thread.start_ns);
    times.until_ns = std::max(times.until_ns, thread.stop_ns);
  }
  return times;
}

bool has_wake_ups(const PageFacts& facts) {
  return facts.replay.has_dispatches() && facts.session != nullptr &&
         !facts.session->has_perf_records;
}

void write_facts_json(const PageFacts& facts, JsonWriter& json) {
  const Replay& replay = facts.replay;
  const TreeGroups groups(replay, Grouping::kAll);
  const TreeGroup& all = groups.groups().front();
  const CpuTime& cpu = all.tree->cpu_total(all.root);
  const Times times = times_of(replay);
  json.member("is_whole", true);
  if (facts.session != nullptr) json.member("path", safe_name(facts.session->path));
  json.member("command",
              safe_text(command_line_text(first_command(replay.definitions()))));
  json.member("end", end_text(facts.session));
  json.member("wall_ns", wall_ns(replay));
  json.member("thread_ns", (*all.tree)[all.root].total_ns);
  json.member("from_ns", times.from_ns);
  json.member("until_ns", times.until_ns);
  json.member("has_cpu", replay.has_dispatches());
  json.member("has_wake_ups", has_wake_ups(facts));
  json.member("cpu_ns", cpu.cpu_ns);
  write_off_json(cpu, json);
  if (facts.summary != nullptr) {
    json.member("records_text", summary_line(*facts.summary));
    json.member("records", facts.summary->records);
    json.member("lost", facts.summary->lost + facts.summary->overwritten);
  }
  write_counts_json(shown_counts(replay, facts.summary), json);
  write_lines_json("facts",
                   facts.session == nullptr ? std::vector<std::string>()
                                            : session_facts(*facts.session),
                   json);
  if (facts.gaps != nullptr) facts.gaps->write_json(json);
}

void write_names_json(FunctionResolver& resolver, size_t first, JsonWriter& json) {
  const Functions& functions = resolver.functions();
  for (size_t i = first; i < functions.size(); ++i) {
    json.begin_array();
    const auto id = static_cast<FunctionId>(i);
    const std::string_view shown = resolver.shown_names()[id];
    const std::string_view whole = functions[id].name;
    json.value(safe_name(shown));
    json.value(safe_name(functions[id].module));
    const auto kind = function_kind(functions[id]);
    const bool waits = kind && may_wait(*kind);
    if (waits || shown != whole) json.value(waits);
    if (shown != whole) json.value(safe_name(whole));
    json.end();
  }
}

void write_lane_name_json(const Definitions& definitions, const Lane& lane,
                          JsonWriter& json) {
  const Thread* thread = definitions.thread(lane.thread);
  json.member("key",
              absl::StrCat(lane.thread, lane.is_adopted ? "a" : "c", lane.coroutine));
  json.member("name", safe_name(thread_label(definitions, lane.thread)));
  json.member("pid", definitions.pid_of(lane.thread));
  json.member("tid", thread == nullptr ? 0 : thread->tid);
  json.member("program",
              thread != nullptr && thread->interrupts_of.has_value()
                  ? "Interrupt"
                  : safe_name(process_label(
                        definitions, thread == nullptr ? kNoIndex : thread->process)));
  json.member("coroutine", lane.coroutine);
  json.member("adopted", lane.is_adopted);
}

// The times of threads on the CPU, all but what arctrace itself did in them.
absl::flat_hash_map<ThreadIndex, uint64_t> cpu_ns_by_thread(const Replay& replay) {
  absl::flat_hash_map<ThreadIndex, uint64_t> cpu_ns;
  for (const ThreadTree& tree : replay.threads()) {
    cpu_ns[tree.thread] = replay.tree().cpu_total(tree.root).cpu_ns;
  }
  return cpu_ns;
}

void write_lanes_json(const PageFacts& facts, JsonWriter& json) {
  const Definitions& definitions = facts.replay.definitions();
  const auto cpu_ns = cpu_ns_by_thread(facts.replay);
  json.key("lanes").begin_array();
  for (const Lane& lane : facts.parts.timeline().lanes()) {
    json.begin_object();
    write_lane_name_json(definitions, lane, json);
    json.member("levels", lane.levels);
    json.member("calls", lane.calls);
    const bool is_own_stack = lane.coroutine == 0 && !lane.is_adopted;
    const auto own = is_own_stack ? cpu_ns.find(lane.thread) : cpu_ns.end();
    json.member("cpu_ns", own != cpu_ns.end() ? own->second : lane.cpu_ns);
    json.member("work_ns", lane.work_ns);
    json.key("parts").begin_array();
    for (const Stretch& part : lane.parts) {
      json.begin_array();
      json.value(part.what);
      json.value(part.start_ns);
      json.value(part.stop_ns);
      json.end();
    }
    json.end();
    json.end();
  }
  json.end();
  json.member("calls_without_row", facts.parts.timeline().calls_without_row());
}

void write_flame_json(const PageFacts& facts, Grouping grouping,
                      std::span<const FunctionId> ids, size_t max_nodes,
                      JsonWriter& json) {
  const TreeGroups groups(facts.replay, grouping, TreeGroups::Of::kThreadsAndInterrupts);
  const NodeFilter filter(groups, max_nodes);
  json.key("groups").begin_array();
  for (const TreeGroup& group : groups.groups()) {
    json.begin_object();
    json.member("name", safe_name(group.name));
    json.member("pid", group.pid);
    json.member("tid", group.tid);
    json.key("nodes").begin_array();
    FlameNodes nodes(group, filter, ids, json);
    NodeFilter::for_nodes(group, [&](NodeIndex node) { nodes.write(node); });
    nodes.write_hidden();
    json.end();
    json.end();
  }
  json.end();
}

void renumber(TimeRow& row, std::span<const FunctionId> ids) {
  for (Stretch& stretch : row.stretches) stretch.what = id_on_page(stretch.what, ids);
  for (DensityBucket& bucket : row.buckets) bucket.what = id_on_page(bucket.what, ids);
}

void write_row_json(uint32_t level, const TimeRow& seen, int64_t from_ns,
                    JsonWriter& json) {
  json.begin_array();
  json.value(level);
  json.begin_array();
  int64_t last_ns = from_ns;
  for (const Stretch& stretch : seen.stretches) {
    json.value(static_cast<int64_t>(static_cast<uint64_t>(stretch.start_ns) -
                                    static_cast<uint64_t>(last_ns)));
    json.value(stretch.duration_ns());
    json.value(stretch.what);
    json.value(stretch.flags);
    last_ns = stretch.start_ns;
  }
  json.end();
  json.begin_array();
  last_ns = from_ns;
  for (const DensityBucket& bucket : seen.buckets) {
    json.value(static_cast<int64_t>(static_cast<uint64_t>(bucket.start_ns) -
                                    static_cast<uint64_t>(last_ns)));
    json.value(bucket.busy_ns);
    json.value(bucket.count);
    json.value(bucket.what);
    last_ns = bucket.start_ns;
  }
  json.end();
  json.end();
}

void write_rows_json(const Timeline& timeline, const Lane& lane, int64_t from_ns,
                     int64_t until_ns, uint64_t pixel_ns, JsonWriter& json) {
  json.begin_array();
  for (uint32_t level = 0; level < lane.levels; ++level) {
    const TimeRow seen =
        seen_of_row(timeline.row(lane, level), from_ns, until_ns, pixel_ns);
    if (seen.stretches.empty() && seen.buckets.empty()) continue;
    write_row_json(level, seen, from_ns, json);
  }
  json.end();
}

}  // namespace arctrace::reader
