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
  uint64_t others_ns = 0;
  const auto columns = [&](uint64_t time_ns) {
    std::string row;
    append_right(row, scaled_text(time_ns, scale), 8);
    append_right(row, share_text(time_ns, wall_ns), 6);
    const std::string bar = bar_text(time_ns, wall_ns, kPathBarColumns, style);
    absl::StrAppend(&row, " ", bar);
    row.append(kPathBarColumns - columns_of(bar), ' ');
    return row + "  ";
  };
  for (const CriticalPathRow& row :
       critical_path_by_name(critical_path_rows(path, facts.replay, labels))) {
    if (section.rows.size() == kPathNamesMax ||
        static_cast<double>(row.time_ns) * 100 <
            static_cast<double>(wall_ns) * kPathLeastPercent) {
      others_ns += row.time_ns;
      continue;
    }
    const std::string where = absl::StrCat("  ", std::string(path_state_name(row.state)),
                                           row.path.empty() ? "" : " in ", row.path);
    section.rows.push_back(summary_row(columns(row.time_ns),
                                       absl::StrCat(row.name, where), "", false, style));
  }
  if (others_ns != 0) section.rows.push_back(columns(others_ns) + "others");
  section.rows.push_back(
      wrap_line(absl::StrCat("  in all: ", critical_states_text(path)), 4, style));
  return section;
}

}  // namespace arctrace::reader
