#include "reader/report/critical_path_rows.hpp"

#include <absl/strings/str_cat.h>

#include <algorithm>

#include "reader/analysis/tree_groups.hpp"
#include "reader/render/report_parts.hpp"
#include "reader/render/thread_labels.hpp"
#include "reader/trace/text_escape.hpp"

namespace arctrace::reader {
namespace {

std::string path_name(const Definitions& definitions, ThreadIndex thread) {
  const std::string program =
      process_label(definitions, definitions.threads()[thread].process);
  const std::string name = thread_label(definitions, thread);
  return escaped(program == name ? program : absl::StrCat(program, ", thread ", name));
}

void sort_by_time(std::vector<CriticalPathRow>& rows) {
  std::stable_sort(rows.begin(), rows.end(),
                   [](const CriticalPathRow& a, const CriticalPathRow& b) {
                     return a.time_ns > b.time_ns;
                   });
}

}  // namespace

std::vector<CriticalPathRow> critical_path_rows(const CriticalPath& path,
                                                const Replay& replay,
                                                FunctionLabels& labels) {
  absl::btree_map<std::tuple<std::string, std::string, PathState>, uint64_t> merged;
  for (const auto& [key, time_ns] : path.sums) {
    const auto& [thread, node, state] = key;
    merged[{path_name(replay.definitions(), thread),
            path_text(replay.tree(), node, labels), state}] += time_ns;
  }
  std::vector<CriticalPathRow> rows;
  for (const auto& [key, time_ns] : merged) {
    const auto& [name, text, state] = key;
    rows.push_back({time_ns, name, text, state});
  }
  sort_by_time(rows);
  return rows;
}

std::vector<CriticalPathRow> critical_path_by_name(
    const std::vector<CriticalPathRow>& rows) {
  std::vector<CriticalPathRow> merged;
  for (const CriticalPathRow& row : rows) {
    const auto found =
        std::find_if(merged.begin(), merged.end(),
                     [&](const CriticalPathRow& have) { return have.name == row.name; });
    if (found == merged.end()) {
      merged.push_back(row);
    } else {
      found->time_ns += row.time_ns;
    }
  }
  sort_by_time(merged);
  return merged;
}

std::string critical_states_text(const CriticalPath& path) {
  const std::array<uint64_t, kPathStates> sums = path.state_sums();
  std::string text;
  for (size_t i = 0; i < kPathStates; ++i) {
    if (sums[i] == 0) continue;
    absl::StrAppend(&text, text.empty() ? "" : ", ",
                    std::string(path_state_name(static_cast<PathState>(i))), " ",
                    duration_text(sums[i]));
  }
  return text;
}

}  // namespace arctrace::reader
