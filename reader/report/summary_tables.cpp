#include <absl/container/btree_map.h>
#include <absl/strings/str_cat.h>

#include <algorithm>
#include <utility>

#include "reader/analysis/function_totals.hpp"
#include "reader/analysis/time_parts.hpp"
#include "reader/render/frame_marks.hpp"
#include "reader/render/report_parts.hpp"
#include "reader/render/thread_labels.hpp"
#include "reader/report/summary_lines.hpp"
#include "reader/trace/text_escape.hpp"

// The tables of the summary: what the time was spent on, functions, paths, threads.

namespace arctrace::reader {
namespace {

constexpr size_t kPartsMax = 8;
constexpr size_t kFunctionsMax = 8;
constexpr size_t kPathsMax = 5;
constexpr size_t kThreadsMax = 6;
constexpr double kLeastPercent = 2;  // smaller parts and paths are not shown

bool is_small(uint64_t part_ns, uint64_t all_ns) {
  return static_cast<double>(part_ns) * 100 < static_cast<double>(all_ns) * kLeastPercent;
}

// "     5.160 ms   64.00": a time and its share in all, two columns of 13 and 8.
void append_time(std::string& row, uint64_t time_ns, uint64_t all_ns) {
  append_right(row, duration_text(time_ns), 13);
  append_right(row, percent_text(time_ns, all_ns), 8);
}

// By FunctionId: the parts of the functions' base times.
std::vector<CpuTime> own_cpu_times(const SummaryFacts& facts) {
  const CallTree& tree = *facts.all.tree;
  std::vector<CpuTime> times(facts.replay.functions().size());
  for (NodeIndex at = facts.all.root; at != kNoNode;
       at = tree.next_in_preorder(at, facts.all.root)) {
    times[tree[at].function] += tree.cpu_base(at);
  }
  return times;
}

}  // namespace

SummarySection parts_section(const SummaryFacts& facts, const TextStyle& style) {
  SummarySection section;
  const CallTree& tree = *facts.all.tree;
  const uint64_t all_ns = facts.all_ns();
  const bool has_cpu = facts.replay.has_dispatches();
  std::string head;
  append_right(head, "Time", 13);
  append_right(head, "%", 8);
  if (has_cpu) {
    append_right(head, "On CPU", 13);
    append_right(head, "Waiting", 13);
  }
  append_right(head, "Calls", 10);
  section.head = summary_head(head + "  Spent on", style);
  TimePart others{"others"};
  const auto add_row = [&](const TimePart& part) {
    std::string row;
    append_time(row, part.base_ns, all_ns);
    if (has_cpu) append_cpu(row, part.cpu);
    append_right(row, part.calls == 0 ? "-" : absl::StrCat(part.calls), 10);
    section.rows.push_back(summary_row(row + "  ", escaped(part.name),
                                       end_within_text(part.end_within_ns), false,
                                       style));
  };
  for (const TimePart& part :
       time_parts(tree, facts.replay.functions(), facts.all.root)) {
    if (section.rows.size() < kPartsMax && !is_small(part.base_ns, all_ns)) {
      add_row(part);
    } else {
      others.calls += part.calls;
      others.base_ns += part.base_ns;
      others.cpu += part.cpu;
      others.end_within_ns += part.end_within_ns;
    }
  }
  if (others.base_ns != 0) add_row(others);
  return section;
}

SummarySection functions_section(const SummaryFacts& facts, FunctionLabels& labels,
                                 const TextStyle& style) {
  SummarySection section;
  const bool has_cpu = facts.replay.has_dispatches();
  const uint64_t all_ns = facts.all_ns();
  std::string head;
  append_right(head, "Self", 13);
  append_right(head, "%", 8);
  append_right(head, "Calls", 10);
  append_right(head, has_cpu ? "Waiting" : "Avg", 12);
  append_right(head, "Max", 12);
  section.head = summary_head(head + "  Hottest functions", style);
  const std::vector<CpuTime> own = own_cpu_times(facts);
  for (const FunctionTotal& total : function_totals(
           *facts.all.tree, facts.replay.functions(), facts.all.root, SortKey::kBase)) {
    if (section.rows.size() == kFunctionsMax || total.base_ns == 0) break;
    const DurationHistogram* times = facts.times.find(facts.all, total.function);
    std::string row;
    append_time(row, total.base_ns, all_ns);
    append_right(row, absl::StrCat(total.calls), 10);
    if (has_cpu) {
      const uint64_t off_ns = own[total.function].off_ns;
      append_right(row, off_ns == 0 ? "-" : duration_text(off_ns), 12);
    } else {
      append_right(row, times == nullptr ? "-" : duration_text(times->average_ns()), 12);
    }
    append_right(row, times == nullptr ? "-" : duration_text(times->max_ns()), 12);
    section.rows.push_back(summary_row(row + "  ", labels.text(total.function),
                                       end_within_text(total.marks.end_within_ns),
                                       is_hot(total.base_ns, all_ns), style));
  }
  return section;
}

SummarySection paths_section(const SummaryFacts& facts, FunctionLabels& labels,
                             const TextStyle& style) {
  SummarySection section;
  const CallTree& tree = *facts.all.tree;
  const uint64_t all_ns = facts.all_ns();
  std::string head;
  append_right(head, "Self", 13);
  append_right(head, "%", 8);
  section.head = summary_head(head + "  Hottest paths", style);
  std::vector<NodeIndex> nodes;
  for (NodeIndex at = tree.next_in_preorder(facts.all.root, facts.all.root);
       at != kNoNode; at = tree.next_in_preorder(at, facts.all.root)) {
    // A path of one function says no more than the function.
    if (tree[at].parent != facts.all.root && !is_small(tree[at].base_ns, all_ns)) {
      nodes.push_back(at);
    }
  }
  std::stable_sort(nodes.begin(), nodes.end(), [&](NodeIndex a, NodeIndex b) {
    return tree[a].base_ns > tree[b].base_ns;
  });
  if (nodes.size() > kPathsMax) nodes.resize(kPathsMax);
  for (const NodeIndex node : nodes) {
    std::string row;
    append_time(row, tree[node].base_ns, all_ns);
    section.rows.push_back(summary_row(row + "  ", path_text(tree, node, labels),
                                       end_within_text(tree.marks(node).end_within_ns),
                                       false, style));
  }
  return section;
}

SummarySection threads_section(const SummaryFacts& facts, FunctionLabels& labels,
                               const TextStyle& style) {
  SummarySection section;
  const Replay& replay = facts.replay;
  if (replay.threads().size() < 2) return section;
  struct Like {
    std::string name;
    uint64_t threads = 0, time_ns = 0;
    CpuTime cpu;
    NodeIndex root = kNoNode;  // in merged
  };
  CallTree merged;
  absl::btree_map<std::string, Like> by_name;
  for (const ThreadTree& thread : replay.threads()) {
    const Definitions& definitions = replay.definitions();
    const std::string program =
        process_label(definitions, definitions.threads()[thread.thread].process);
    const std::string name = thread_label(definitions, thread.thread);
    Like& like =
        by_name[program == name ? program : absl::StrCat(program, ", thread ", name)];
    if (like.root == kNoNode) like.root = merged.add_root();
    merged.merge(like.root, replay.tree(), thread.root);
    ++like.threads;
    like.time_ns += replay.tree()[thread.root].cum_ns;
    like.cpu += replay.tree().cpu_cum(thread.root);
  }
  std::vector<Like> all;
  for (auto& [name, like] : by_name) {
    merged.sum_up(like.root);
    like.name = name;
    all.push_back(std::move(like));
  }
  std::stable_sort(all.begin(), all.end(),
                   [](const Like& a, const Like& b) { return a.time_ns > b.time_ns; });
  std::string head;
  append_right(head, "Time", 13);
  append_right(head, "%", 8);
  if (replay.has_dispatches()) append_right(head, "On CPU", 13);
  append_right(head, "Threads", 10);
  section.head = summary_head(head + "  Of what, and where mostly", style);
  for (const Like& like : all) {
    if (section.rows.size() == kThreadsMax) {
      section.rows.push_back(absl::StrCat("  (", all.size() - kThreadsMax, " more)"));
      break;
    }
    std::string row;
    append_time(row, like.time_ns, facts.all_ns());
    if (replay.has_dispatches()) append_right(row, duration_text(like.cpu.cpu_ns), 13);
    append_right(row, absl::StrCat(like.threads), 10);
    std::string notes;
    const auto totals =
        function_totals(merged, replay.functions(), like.root, SortKey::kBase);
    if (!totals.empty() && totals.front().base_ns != 0) {
      notes = absl::StrCat("  ", labels.text(totals.front().function), " ",
                           duration_text(totals.front().base_ns));
    }
    section.rows.push_back(
        summary_row(row + "  ", escaped(like.name), notes, false, style));
  }
  return section;
}

}  // namespace arctrace::reader
