#include <absl/container/btree_map.h>
#include <absl/strings/str_cat.h>

#include <algorithm>
#include <utility>

#include "reader/analysis/function_totals.hpp"
#include "reader/analysis/kind_totals.hpp"
#include "reader/render/labels.hpp"
#include "reader/render/report_parts.hpp"
#include "reader/render/session_text.hpp"
#include "reader/render/text_style.hpp"
#include "reader/report/summary_lines.hpp"
#include "reader/trace/text_escape.hpp"

// The tables of the summary: what the time was spent on, functions, paths, threads.

namespace arctrace::reader {
namespace {

constexpr size_t kPartsMax = 8;
constexpr size_t kPartBarColumns = 8;
constexpr size_t kPathsMax = 5;
constexpr uint64_t kFewCalls = 4;
constexpr size_t kThreadsMax = 6;
constexpr double kLeastPercent = 2;  // smaller parts and paths are not shown

bool is_small(uint64_t part_ns, uint64_t all_ns) {
  return static_cast<double>(part_ns) * 100 < static_cast<double>(all_ns) * kLeastPercent;
}

void append_time_head(std::string& head, std::string_view what, const TimeScale& scale) {
  append_right(head, absl::StrCat(std::string(what), scale.unit), 8);
  append_right(head, "%", 6);
}

// "    5.16  64 %": a time and its share in all, two columns of 8 and 6.
void append_time(std::string& row, uint64_t time_ns, uint64_t all_ns,
                 const TimeScale& scale) {
  append_right(row, scaled_text(time_ns, scale), 8);
  append_right(row, share_text(time_ns, all_ns), 6);
}

// Returns by FunctionId the parts of the functions' self times.
std::vector<CpuTime> own_cpu_times(const SummaryFacts& facts) {
  const CallTree& tree = *facts.all.tree;
  std::vector<CpuTime> times(facts.replay.functions().size());
  for (NodeIndex at = facts.all.root; at != kNoNode;
       at = tree.next_in_preorder(at, facts.all.root)) {
    times[tree[at].function] += tree.cpu_self(at);
  }
  return times;
}

// The columns of time off the CPU: blocked, or without a CPU, as far as that is known.
void append_off_head(std::string& head, KnownTimes known) {
  if (known == KnownTimes::kNone) return;
  append_right(head, known == KnownTimes::kReady ? "Blocked" : "Off CPU", 10);
  if (known == KnownTimes::kReady) append_right(head, "No CPU", 9);
}
void append_off(std::string& row, const CpuTime& cpu, KnownTimes known) {
  if (known == KnownTimes::kNone) return;
  const bool has_ready = known == KnownTimes::kReady;
  append_right(row, duration_text(has_ready ? cpu.blocked_ns() : cpu.off_ns), 10);
  if (has_ready) append_right(row, duration_text(cpu.ready_ns), 9);
}

// Whether a terminal has space for names only if columns and bars give way to them.
bool is_narrow(const TextStyle& style) { return style.width != 0 && style.width < 72; }

// The times off the CPU that have columns.
KnownTimes off_columns(const Replay& replay, const TextStyle& style) {
  return is_narrow(style) ? KnownTimes::kNone : replay.known_times();
}

}  // namespace

SummarySection parts_section(const SummaryFacts& facts, const TextStyle& style) {
  SummarySection section;
  const CallTree& tree = *facts.all.tree;
  const uint64_t all_ns = facts.all_ns();
  const KnownTimes known = off_columns(facts.replay, style);
  const bool has_cpu = facts.replay.known_times() != KnownTimes::kNone;
  const bool has_bar = !is_narrow(style);
  std::vector<TimePart> parts = time_parts(tree, facts.replay, facts.all.root);
  size_t shown = 0;
  while (shown < std::min(parts.size(), kPartsMax) &&
         (shown == 0 || !is_small(parts[shown].self_ns, all_ns))) {
    ++shown;
  }
  const auto others_from = [&](size_t first) {
    TimePart others = {};
    uint64_t count = 0;
    for (size_t i = first; i < parts.size(); ++i) {
      const TimePart& part = parts[i];
      if (part.self_ns != 0) ++count;
      others.calls += part.calls;
      others.self_ns += part.self_ns;
      others.cpu += part.cpu;
      others.end_within_ns += part.end_within_ns;
      others.begin_within_ns += part.begin_within_ns;
    }
    others.name = others_name(count);
    return others;
  };
  uint64_t largest_ns = others_from(shown).self_ns;
  for (const TimePart& part : parts) largest_ns = std::max(largest_ns, part.self_ns);
  if (parts.empty()) return section;
  const TimeScale scale = time_scale(largest_ns);
  std::string head;
  append_time_head(head, "", scale);
  if (has_bar) head.append(1 + kPartBarColumns, ' ');
  if (has_cpu) append_right(head, "On CPU", 10);
  append_off_head(head, known);
  append_right(head, "Calls", 10);
  section.head = summary_head(head + "  Spent on", style);
  const auto row_of = [&](const TimePart& part) {
    std::string row;
    append_time(row, part.self_ns, all_ns, scale);
    if (has_bar) {
      const std::string bar = bar_text(part.self_ns, all_ns, kPartBarColumns, style);
      absl::StrAppend(&row, " ", bar);
      row.append(kPartBarColumns - columns_of(bar), ' ');
    }
    if (has_cpu) append_right(row, duration_text(part.cpu.cpu_ns), 10);
    append_off(row, part.cpu, known);
    append_right(row, part.calls == 0 ? "-" : grouped_text(part.calls), 10);
    const std::string notes =
        not_known_text(part.cpu.unknown_ns) + within_text(part.within_ns());
    return summary_row(row + "  ", escaped(part.name), notes, false, style);
  };
  for (size_t i = 0; i < shown; ++i) section.rows.push_back(row_of(parts[i]));
  for (size_t i = 0; i <= shown; ++i) {
    const TimePart others = others_from(i);
    section.others.push_back(others.self_ns == 0 ? "" : row_of(others));
  }
  return section;
}

SummarySection few_calls_section(const SummaryFacts& facts, FunctionLabels& labels,
                                 const TextStyle& style) {
  SummarySection section;
  const Functions& functions = facts.replay.functions();
  std::string calls_text, rest_text;
  uint64_t calls = 0;
  const auto append = [](std::string& text, const std::string& name, uint64_t time_ns,
                         const std::string& notes) {
    absl::StrAppend(&text, text.empty() ? "" : ", ", name, " ", duration_text(time_ns),
                    notes);
  };
  for (const FunctionTotal& total :
       function_totals(*facts.all.tree, functions, facts.all.root, SortKey::kSelf)) {
    const Function& function = functions[total.function];
    if (is_signal(function)) continue;
    if (total.function == functions.own_work()) continue;
    if (function.module.empty() && function.name.starts_with('[')) {
      append(rest_text, labels.text(total.function), total.self_ns,
             within_text(total.marks.within_ns()));
      continue;
    }
    calls += total.calls;
    if (calls >= kFewCalls) return section;
    append(calls_text, labels.text(total.function), total.self_ns,
           within_text(total.marks.within_ns()) + labels.recorded_note(total.function));
  }
  const CallTree& tree = *facts.all.tree;
  if (const uint64_t outside_ns = tree[facts.all.root].self_ns; outside_ns != 0) {
    append(rest_text, outside_name(facts.replay), outside_ns,
           within_text(tree.marks(facts.all.root).within_ns()));
  }
  const bool is_filtered = calls == 0 && !facts.replay.has_all_calls();
  section.head =
      summary_head(is_filtered ? "no call passes the filters"
                               : count_text(calls, "call") + ": too few for shares",
                   style);
  if (!calls_text.empty()) section.rows.push_back(wrap_line("  " + calls_text, 4, style));
  if (!rest_text.empty()) {
    section.rows.push_back(wrap_line("  the rest: " + rest_text, 4, style));
  }
  return section;
}

SummarySection functions_section(const SummaryFacts& facts, FunctionLabels& labels,
                                 const TextStyle& style) {
  SummarySection section;
  const KnownTimes known = off_columns(facts.replay, style);
  const bool has_cpu = facts.replay.known_times() != KnownTimes::kNone;
  const uint64_t all_ns = facts.all_ns();
  const std::vector<FunctionTotal> totals = hottest_functions(facts);
  const TimeScale scale = time_scale(totals.empty() ? 0 : totals.front().self_ns);
  std::string head;
  append_time_head(head, "Self ", scale);
  append_right(head, "Calls", 12);
  append_off_head(head, known);
  if (!has_cpu) append_right(head, "Avg", 10);
  append_right(head, "Max", 10);
  section.head = summary_head(head + "  Hottest functions", style);
  section.mark = "[recording]";
  section.legend =
      absl::StrCat("  ", section.mark, ": recording is half or more of a function's time",
                   facts.replay.is_corrected() ? ", and taken off" : "; see --corrected");
  const std::vector<CpuTime> own = own_cpu_times(facts);
  for (const FunctionTotal& total : totals) {
    if (section.rows.size() == kFunctionsMax || total.self_ns == 0) break;
    const DurationHistogram* times = facts.times.find(facts.all, total.function);
    std::string row;
    append_time(row, total.self_ns, all_ns, scale);
    append_right(row, grouped_text(total.calls), 12);
    append_off(row, own[total.function], known);
    if (!has_cpu) {
      append_right(row, times == nullptr ? "-" : call_time_text(times->average_ns()), 10);
    }
    append_right(row, times == nullptr ? "-" : call_time_text(times->max_ns()), 10);
    const std::string overhead =
        overhead_note(total.self_ns, total.overhead_ps, facts.replay);
    section.rows.push_back(summary_row(row + "  ", labels.text(total.function),
                                       not_known_text(own[total.function].unknown_ns) +
                                           within_text(total.marks.within_ns()) +
                                           labels.recorded_note(total.function) +
                                           overhead,
                                       is_hot(total.self_ns, all_ns), style));
  }
  // The row also has the time that is no function's, and the waits for patches.
  const auto others_row = [&](size_t shown) -> std::string {
    uint64_t rest_ns = all_ns, calls = 0, count = 0;
    CpuTime cpu = facts.all.tree->cpu_total(facts.all.root);
    for (size_t i = 0; i < totals.size(); ++i) {
      if (i < shown) {
        rest_ns -= totals[i].self_ns;
        cpu -= own[totals[i].function];
      } else {
        calls += totals[i].calls;
        if (totals[i].self_ns != 0) ++count;
      }
    }
    if (rest_ns == 0) return {};
    if ((*facts.all.tree)[facts.all.root].self_ns != 0) ++count;
    std::string row;
    append_time(row, rest_ns, all_ns, scale);
    append_right(row, grouped_text(calls), 12);
    append_off(row, cpu, known);
    if (!has_cpu) append_right(row, "-", 10);
    append_right(row, "-", 10);
    return summary_row(row + "  ", others_name(count), not_known_text(cpu.unknown_ns),
                       false, style);
  };
  for (size_t i = 0; i <= section.rows.size(); ++i) {
    section.others.push_back(section.rows.empty() ? "" : others_row(i));
  }
  return section;
}

namespace {

// Returns the path to a node. Of a deep one, which path_text() has without its beginning,
// the outermost and the innermost functions stay.
std::string whole_path_text(const CallTree& tree, NodeIndex node, NodeIndex root,
                            FunctionLabels& labels) {
  std::vector<FunctionId> path;  // innermost first
  for (NodeIndex at = node; at != root; at = tree[at].parent) {
    path.push_back(tree[at].function);
  }
  if (path.size() <= kPathFunctionsMax) return path_text(tree, node, labels);
  std::string text;
  for (size_t i = 0; i < kPathFunctionsMax; ++i) {
    const bool is_head = i < kPathFunctionsMax / 2;
    if (i == kPathFunctionsMax / 2) text += " > ...";
    absl::StrAppend(&text, i == 0 ? "" : " > ",
                    labels.text(is_head ? path[path.size() - 1 - i]
                                        : path[kPathFunctionsMax - 1 - i]));
  }
  return text;
}

}  // namespace

SummarySection paths_section(const SummaryFacts& facts, FunctionLabels& labels,
                             const TextStyle& style) {
  SummarySection section;
  const CallTree& tree = *facts.all.tree;
  const uint64_t all_ns = facts.all_ns();
  std::vector<NodeIndex> nodes;
  uint64_t all_paths = (tree[facts.all.root].self_ns == 0) ? 0 : 1;
  bool has_depth = false;
  for (NodeIndex at = tree.next_in_preorder(facts.all.root, facts.all.root);
       at != kNoNode; at = tree.next_in_preorder(at, facts.all.root)) {
    if (tree[at].self_ns != 0) ++all_paths;
    if (is_small(tree[at].self_ns, all_ns)) continue;
    nodes.push_back(at);
    has_depth |= tree[at].parent != facts.all.root;
  }
  std::stable_sort(nodes.begin(), nodes.end(), [&](NodeIndex a, NodeIndex b) {
    return tree[a].self_ns > tree[b].self_ns;
  });
  // Paths of one function each would repeat the functions' rows.
  if (!has_depth) return section;
  if (nodes.size() > kPathsMax) nodes.resize(kPathsMax);
  const TimeScale scale = time_scale(tree[nodes.front()].self_ns);
  std::string head;
  append_time_head(head, "Self ", scale);
  section.head = summary_head(head + "  Hottest paths", style);
  uint64_t rest_ns = all_ns;
  const auto add_others = [&] {
    std::string row;
    append_time(row, rest_ns, all_ns, scale);
    section.others.push_back(
        rest_ns == 0
            ? ""
            : absl::StrCat(row, "  ", others_name(all_paths - section.rows.size())));
  };
  for (const NodeIndex node : nodes) {
    add_others();
    std::string row;
    append_time(row, tree[node].self_ns, all_ns, scale);
    row += "  ";
    const std::string notes = within_text(tree.marks(node).within_ns());
    section.rows.push_back(
        summary_row(row,
                    overview_path(whole_path_text(tree, node, facts.all.root, labels),
                                  columns_of(row + notes), style),
                    notes, false, style));
    rest_ns -= tree[node].self_ns;
  }
  add_others();
  return section;
}

std::string program_and_thread(const Definitions& definitions, ThreadIndex thread) {
  const std::string program =
      process_label(definitions, definitions.threads()[thread].process);
  const std::string name = thread_label(definitions, thread);
  return program == name ? program : absl::StrCat(program, ", thread ", name);
}

// Returns the threads that the trace knows but has no record of, by name.
absl::btree_map<std::string, uint64_t> silent_threads(const Replay& replay) {
  absl::btree_map<std::string, uint64_t> silent;
  if (!replay.is_of_all()) return silent;
  const Definitions& definitions = replay.definitions();
  std::vector<bool> has_records(definitions.threads().size());
  for (const ThreadTree& thread : replay.threads()) has_records[thread.thread] = true;
  for (ThreadIndex i = 0; i < has_records.size(); ++i) {
    if (!has_records[i] && !definitions.threads()[i].of_kernel()) {
      ++silent[program_and_thread(definitions, i)];
    }
  }
  return silent;
}

SummarySection threads_section(const SummaryFacts& facts, FunctionLabels& labels,
                               const TextStyle& style) {
  SummarySection section;
  const Replay& replay = facts.replay;
  const absl::btree_map<std::string, uint64_t> silent = silent_threads(replay);
  if (replay.threads().empty() || replay.threads().size() + silent.size() < 2) {
    return section;
  }
  struct Like {
    std::string name;
    uint64_t threads = 0, time_ns = 0;
    CpuTime cpu = {};
    NodeIndex root = kNoNode;  // in merged; kNoNode: they have no records
  };
  CallTree merged;
  absl::btree_map<std::string, Like> by_name;
  for (const ThreadTree& thread : replay.threads()) {
    Like& like = by_name[program_and_thread(replay.definitions(), thread.thread)];
    if (like.root == kNoNode) like.root = merged.add_root();
    merged.merge(like.root, replay.tree(), thread.root);
    ++like.threads;
    like.time_ns += replay.tree()[thread.root].total_ns;
    like.cpu += replay.tree().cpu_total(thread.root);
  }
  std::vector<Like> all;
  for (auto& [name, like] : by_name) {
    merged.sum_up(like.root);
    like.name = name;
    all.push_back(std::move(like));
  }
  // Where it is known who worked, sleepers come last.
  const bool has_cpu = replay.has_dispatches();
  std::stable_sort(all.begin(), all.end(), [has_cpu](const Like& a, const Like& b) {
    const uint64_t cpu_a = has_cpu ? a.cpu.cpu_ns : 0;
    const uint64_t cpu_b = has_cpu ? b.cpu.cpu_ns : 0;
    return cpu_a != cpu_b ? cpu_a > cpu_b : a.time_ns > b.time_ns;
  });
  // Threads without records come after the first few that have some.
  std::vector<Like> without;
  without.reserve(silent.size());
  for (const auto& [name, threads] : silent) without.push_back({name, threads});
  const size_t with = std::min(all.size(), kThreadsMax);
  const size_t shown = std::min(with + without.size(), 2 * kThreadsMax);
  all.insert(all.begin() + static_cast<std::ptrdiff_t>(with), without.begin(),
             without.end());
  const TimeScale scale = time_scale(
      std::max_element(all.begin(), all.end(), [](const Like& a, const Like& b) {
        return a.time_ns < b.time_ns;
      })->time_ns);
  std::string head;
  append_time_head(head, "", scale);
  if (has_cpu) append_right(head, "On CPU", 10);
  append_right(head, "Threads", 9);
  section.head = summary_head(head + "  Of what, and where mostly", style);
  const auto columns = [&](const Like& like) {
    std::string row;
    append_time(row, like.time_ns, facts.all_ns(), scale);
    if (replay.has_dispatches()) append_right(row, duration_text(like.cpu.cpu_ns), 10);
    append_right(row, grouped_text(like.threads), 9);
    return row + "  ";
  };
  for (size_t i = 0; i < shown; ++i) {
    const Like& like = all[i];
    if (like.root == kNoNode) {
      std::string row;
      append_right(row, "-", 8);
      append_right(row, "", replay.has_dispatches() ? 6 + 10 : 6);
      append_right(row, grouped_text(like.threads), 9);
      section.rows.push_back(summary_row(row + "  ", escaped(like.name),
                                         "  no call recorded", false, style));
      continue;
    }
    std::string notes;
    const auto totals =
        function_totals(merged, replay.functions(), like.root, SortKey::kSelf);
    const auto most = totals.begin();
    if (most != totals.end() && most->self_ns != 0) {
      const std::string time = absl::StrCat(" ", duration_text(most->self_ns));
      const size_t used = columns_of(columns(like)) + columns_of(escaped(like.name)) + 2 +
                          columns_of(time);
      const size_t left = style.width > used ? style.width - used : 1;
      notes = absl::StrCat("  ",
                           cut_name(labels.text(most->function),
                                    style.width == 0 || style.whole ? 0 : left, style),
                           time);
    }
    notes += not_known_text(like.cpu.unknown_ns);
    section.rows.push_back(
        summary_row(columns(like), escaped(like.name), notes, false, style));
  }
  for (size_t i = 0; i <= shown; ++i) {
    Like others;
    for (size_t k = i; k < all.size(); ++k) {
      others.threads += all[k].threads;
      others.time_ns += all[k].time_ns;
      others.cpu += all[k].cpu;
    }
    section.others.push_back(
        i == all.size()
            ? ""
            : summary_row(columns(others), others_name(all.size() - i),
                          not_known_text(others.cpu.unknown_ns), false, style));
  }
  return section;
}

}  // namespace arctrace::reader
