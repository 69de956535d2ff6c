// The rows of the summary about what recording the program cost it.
#include <absl/container/flat_hash_set.h>
#include <absl/strings/str_cat.h>
#include <arctrace/format.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "reader/analysis/function_totals.hpp"
#include "reader/analysis/recorded_state.hpp"
#include "reader/render/report_parts.hpp"
#include "reader/render/session_text.hpp"
#include "reader/report/summary_lines.hpp"
#include "reader/trace/text_escape.hpp"

namespace arctrace::reader {
namespace {

// A cost is worth a remedy if it is this share of the time, and a function is if it has
// this share of the calls.
constexpr uint64_t kWorthPercent = 10;

bool is_worth(uint64_t part, uint64_t all) { return part / kWorthPercent >= all / 100; }

// Whether its calls have hooks: the kernel's records, and what stands for no function,
// cost otherwise.
bool has_hooks(const Function& function) {
  return function.module != kKernelModule && !function.name.starts_with('[');
}

// The calls of the tree's functions.
uint64_t calls_in(const CallTree& tree, NodeIndex root) {
  uint64_t calls = 0;
  for (NodeIndex at = root; at != kNoNode; at = tree.next_in_preorder(at, root)) {
    if (tree[at].function != kRootFunction) calls += tree[at].calls;
  }
  return calls;
}

// What recording cost in all, less the tracer's own work, which has a row of its own; and
// the time that it is a part of: on the CPU, as far as that is known.
struct RecordingCost {
  uint64_t cost_ns, all_ns;
};
RecordingCost recording_cost(const SummaryFacts& facts) {
  const CallTree& tree = *facts.all.tree;
  const NodeIndex root = facts.all.root;
  RecordingCost cost = {(total_overhead_ps(tree, root) -
                         own_work_ps(tree, facts.replay.functions(), root)) /
                            1000,
                        facts.all_ns()};
  const CpuTime& cpu = tree.cpu_total(root);
  if (facts.replay.has_dispatches()) cost.all_ns = cpu.cpu_ns + cpu.unknown_ns;
  if (facts.replay.is_corrected()) cost.all_ns += cost.cost_ns;
  return cost;
}

// What all times of the recording cost are a share of: "of the time on the CPU".
const char* share_of_text(const SummaryFacts& facts) {
  if (!facts.replay.has_dispatches()) return "of the threads' time, waits included";
  return facts.all.tree->cpu_total(facts.all.root).unknown_ns == 0
             ? "of the time on the CPU"
             : "of the time on the CPU, or not known";
}

// Returns what the cost does not count: records that were written, or tried, and are not
// there; empty if there are all.
std::string uncounted_text(const SummaryFacts& facts) {
  if (facts.summary == nullptr) return {};
  std::string what;
  const auto add = [&what](uint64_t count, const char* how) {
    if (count == 0) return;
    absl::StrAppend(&what, what.empty() ? ", without that of " : " and ",
                    grouped_text(count), how);
  };
  add(facts.summary->overwritten, " overwritten");
  add(facts.summary->lost, " lost");
  return what.empty() ? what : what + " records";
}

// Returns the cost of recording itself, on the CPU as far as that is known; empty if it
// is not known, or nothing was recorded.
std::string overhead_text(const SummaryFacts& facts) {
  const CallTree& tree = *facts.all.tree;
  const uint64_t calls = calls_in(tree, facts.all.root);
  const auto [overhead_ns, all_ns] = recording_cost(facts);
  if (overhead_ns == 0 || calls == 0) return {};
  const bool is_corrected = facts.replay.is_corrected();
  const bool has_cpu = facts.replay.has_dispatches();
  const CpuTime& cpu = tree.cpu_total(facts.all.root);
  const std::string begin =
      is_corrected ? "corrected by what recording cost: " : "recording cost ";
  if (overhead_ns < all_ns / 100) {
    return absl::StrCat(begin, "less than 1 % ", share_of_text(facts),
                        uncounted_text(facts));
  }
  const uint64_t percent =
      (100 * overhead_ns + all_ns / 2) / std::max<uint64_t>(all_ns, 1);
  const char* where = !has_cpu              ? ", waits included ("
                      : cpu.unknown_ns == 0 ? " on the CPU ("
                                            : " on the CPU, or not known (";
  std::string text = absl::StrCat(begin, "about ", duration_text(overhead_ns), " of ",
                                  duration_text(all_ns), where, percent, " %)");
  // The number of calls that were hidden is not known, though their cost is.
  if (facts.replay.has_all_calls())
    absl::StrAppend(&text, ", ", overhead_ns / calls, " ns a call");
  return text + uncounted_text(facts);
}

// Returns what the ends of programs cost because of the buffer; empty if that is little.
std::string end_cost_text(const SummaryFacts& facts) {
  const EndCost cost = end_cost(facts.replay, facts.session);
  const CpuTime& cpu = facts.all.tree->cpu_total(facts.all.root);
  const uint64_t all_ns = cpu.cpu_ns + cpu.unknown_ns;
  if (cost.ns == 0 || !is_worth(cost.ns, all_ns)) return {};
  return absl::StrCat("giving up the buffer of ", bytes_text(facts.session->buffer_size),
                      " took about ", duration_text(cost.ns), " ", "(",
                      share_text(cost.ns, all_ns), " ", share_of_text(facts), "), after ",
                      cost.programs == 1 ? "the end of " : "the ends of ",
                      count_text(cost.programs, "program"),
                      ": a smaller one (-b) takes less");
}

// Returns the function with the most calls; empty if recording cost little, or many
// functions have a small part each. There is no advice to leave it out: a call that a
// filter leaves out may cost as much as one that is recorded.
std::string most_recorded_text(const SummaryFacts& facts) {
  const RecordingCost cost = recording_cost(facts);
  if (cost.cost_ns == 0 || !is_worth(cost.cost_ns, cost.all_ns)) return {};
  const CallTree& tree = *facts.all.tree;
  const Functions& functions = facts.replay.functions();
  const FunctionTotal* most = nullptr;
  const std::vector<FunctionTotal> totals =
      function_totals(tree, functions, facts.all.root, SortKey::kCalls);
  for (const FunctionTotal& total : totals) {
    if (!has_hooks(functions[total.function])) continue;
    if (most == nullptr || total.calls > most->calls) most = &total;
  }
  const uint64_t all = calls_in(tree, facts.all.root);
  if (most == nullptr || !is_worth(most->calls, all)) return {};
  return absl::StrCat("  ", share_text(most->calls, all), " of the calls: ",
                      escaped(facts.replay.shown_names()[most->function]), ", ",
                      grouped_text(most->calls));
}

// Whether a filter decided about calls as they were made. Functions that are too small
// for -Z have no hooks.
bool has_costly_filter(const RecordedStates& recorded) {
  const auto causes = recorded.causes();
  return std::any_of(causes.begin(), causes.end(), [](const CallsLeftOut& cause) {
    return cause.is_filter && !cause.what.by.starts_with("-Z");
  });
}

// Returns how long arctrace worked in the program's threads; empty if it is less than 1 %
// of all.
std::string own_work_text(const SummaryFacts& facts) {
  const uint64_t own_ns =
      own_work_ps(*facts.all.tree, facts.replay.functions(), facts.all.root) / 1000;
  if (own_ns == 0 || own_ns < (facts.all_ns() + own_ns) / 100) return {};
  const bool has_others = facts.summary != nullptr &&
                          std::max(facts.summary->processes, facts.summary->threads) > 1;
  return absl::StrCat("arctrace itself took ", duration_text(own_ns),
                      " to start and to patch functions, which is in no sum",
                      has_others ? " but of those who waited for it" : "",
                      ": [arctrace]");
}

}  // namespace

EndCost end_cost(const Replay& replay, const Session* session) {
  EndCost cost;
  if (session == nullptr || !replay.has_dispatches()) return cost;
  const std::vector<arctrace_hook_cost>& costs = session->hook_costs;
  const auto of_process = std::find_if(
      costs.begin(), costs.end(),
      [](const arctrace_hook_cost& one) { return one.kind == ARCTRACE_HOOK_PROCESS; });
  if (of_process == costs.end()) return cost;
  const Definitions& definitions = replay.definitions();
  absl::flat_hash_set<ProcessIndex> ended;
  for (const ThreadTree& tree : replay.threads()) {
    const Process* process = definitions.process_of(tree.thread);
    if (process == nullptr || process->origin == 0) continue;
    if (process->ended_ns() <= tree.stop_ns) {
      ended.insert(definitions.threads()[tree.thread].process);
    }
  }
  cost.programs = ended.size();
  const uint64_t mib = session->buffer_size >> 20;
  cost.ns = cost.programs * (mib * of_process->outside_ps / 1000);
  return cost;
}

std::vector<std::string> cost_rows(const SummaryFacts& facts,
                                   const RecordedStates& recorded) {
  std::vector<std::string> rows;
  if (std::string cost = overhead_text(facts); !cost.empty()) {
    rows.push_back(std::move(cost));
    if (std::string most = most_recorded_text(facts); !most.empty()) {
      rows.push_back(std::move(most));
    }
  }
  if (has_costly_filter(recorded)) {
    rows.push_back(
        absl::StrCat(rows.empty() ? "" : "  ",
                     "what the calls cost that filters left out is not known"));
  }
  if (std::string cost = end_cost_text(facts); !cost.empty()) {
    rows.push_back(std::move(cost));
  }
  if (std::string cost = own_work_text(facts); !cost.empty()) {
    rows.push_back(std::move(cost));
  }
  return rows;
}

}  // namespace arctrace::reader
