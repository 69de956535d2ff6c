#include <absl/strings/str_cat.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "reader/render/line_fitter.hpp"
#include "reader/render/report_parts.hpp"
#include "reader/report/critical_path_rows.hpp"
#include "reader/report/summary_lines.hpp"

// The first table of the summary of several processes that end by themselves.

namespace arctrace::reader {
namespace {

constexpr size_t kPathNamesMax = 6;
constexpr size_t kPathBarColumns = 8;
constexpr double kPathLeastPercent = 2;

// A server's end comes from outside, and what came before it is not why it took so long.
bool ends_by_itself(const SummaryFacts& facts) {
  return facts.session != nullptr && facts.session->child_wait_status.has_value() &&
         !facts.serving.is_server;
}

size_t process_count(const Replay& replay) {
  std::vector<ProcessIndex> processes;
  for (const ThreadTree& thread : replay.threads()) {
    processes.push_back(replay.definitions().threads()[thread.thread].process);
  }
  std::sort(processes.begin(), processes.end());
  return static_cast<size_t>(std::unique(processes.begin(), processes.end()) -
                             processes.begin());
}

// "make  running in main" if it did nothing else; else where it was longest, and the
// parts of the time: "make  mostly in main: running 12.0 ms, disk 3.00 ms". What is cut
// is the path.
std::string row_of_name(const std::string& columns, const CriticalPathName& row,
                        const TextStyle& style) {
  const auto count = std::count_if(row.states.begin(), row.states.end(),
                                   [](uint64_t time_ns) { return time_ns != 0; });
  if (count == 1) {
    const auto state = std::find_if(row.states.begin(), row.states.end(),
                                    [](uint64_t time_ns) { return time_ns != 0; });
    const std::string name(
        path_state_name(static_cast<PathState>(state - row.states.begin())));
    return summary_row(
        columns,
        absl::StrCat(row.name, "  ", name, row.path.empty() ? "" : " in ", row.path), "",
        false, style);
  }
  const std::string states = ": " + path_states_text(row.states);
  const std::string name =
      absl::StrCat(row.name, row.path.empty() ? "" : "  mostly in ", row.path);
  const size_t used = columns_of(columns) + states.size();
  const size_t left = style.width > used ? style.width - used : 1;
  return absl::StrCat(columns, style.width == 0 ? name : cut_name(name, left, style),
                      states);
}

}  // namespace

SummarySection critical_section(const SummaryFacts& facts, FunctionLabels& labels,
                                const TextStyle& style) {
  SummarySection section;
  if (facts.log == nullptr || process_count(facts.replay) < 2 || !ends_by_itself(facts)) {
    return section;
  }
  const std::optional<PathEnd> end = whole_stretch(*facts.log, facts.replay);
  if (!end.has_value()) return section;
  const CriticalPath path = critical_path(*facts.log, facts.replay, *end);
  const uint64_t wall_ns = path.wall_ns();
  const TimeScale scale = time_scale(wall_ns);
  std::string head;
  append_right(head, scale.unit, 8);
  append_right(head, "%", 6);
  head.append(1 + kPathBarColumns, ' ');
  section.head = summary_head(
      absl::StrCat(head, "  What the ", duration_text(wall_ns), " depended on"), style);
  const auto columns = [&](uint64_t time_ns) {
    std::string row;
    append_right(row, scaled_text(time_ns, scale), 8);
    append_right(row, share_text(time_ns, wall_ns), 6);
    const std::string bar = bar_text(time_ns, wall_ns, kPathBarColumns, style);
    absl::StrAppend(&row, " ", bar);
    row.append(kPathBarColumns - columns_of(bar), ' ');
    return row + "  ";
  };
  const std::vector<CriticalPathName> all =
      critical_path_by_name(critical_path_rows(path, facts.replay, labels));
  const auto is_shown = [&](const CriticalPathName& row) {
    return static_cast<double>(row.time_ns) * 100 >=
           static_cast<double>(wall_ns) * kPathLeastPercent;
  };
  for (size_t i = 0; i < all.size(); ++i) {
    if (i == kPathNamesMax || (i != 0 && !is_shown(all[i]))) break;
    section.rows.push_back(row_of_name(columns(all[i].time_ns), all[i], style));
  }
  for (size_t i = 0; i <= section.rows.size(); ++i) {
    CriticalPathName others;
    others.name = others_name(all.size() - i);
    for (size_t k = i; k < all.size(); ++k) {
      others.time_ns += all[k].time_ns;
      for (size_t state = 0; state < kPathStates; ++state) {
        others.states[state] += all[k].states[state];
      }
    }
    section.others.push_back(
        i == all.size() ? "" : row_of_name(columns(others.time_ns), others, style));
  }
  section.end.push_back(
      wrap_line(absl::StrCat("  in all: ", critical_states_text(path)), 4, style));
  return section;
}

}  // namespace arctrace::reader
