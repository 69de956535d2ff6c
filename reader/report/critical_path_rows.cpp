#include "reader/report/critical_path_rows.hpp"

#include <absl/strings/str_cat.h>

#include <algorithm>
#include <utility>

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

template <class Row>
void sort_by_time(std::vector<Row>& rows) {
  std::stable_sort(rows.begin(), rows.end(),
                   [](const Row& a, const Row& b) { return a.time_ns > b.time_ns; });
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

std::vector<CriticalPathName> critical_path_by_name(
    const std::vector<CriticalPathRow>& rows) {
  struct Merged {
    CriticalPathName row;
    absl::btree_map<std::string, uint64_t> paths;
  };
  absl::btree_map<std::string, Merged> merged;
  for (const CriticalPathRow& row : rows) {
    Merged& of_name = merged[row.name];
    of_name.row.time_ns += row.time_ns;
    of_name.row.states[static_cast<size_t>(row.state)] += row.time_ns;
    of_name.paths[row.path] += row.time_ns;
  }
  std::vector<CriticalPathName> names;
  for (auto& [name, of_name] : merged) {
    of_name.row.name = name;
    of_name.row.path =
        std::max_element(of_name.paths.begin(), of_name.paths.end(),
                         [](const auto& a, const auto& b) { return a.second < b.second; })
            ->first;
    names.push_back(std::move(of_name.row));
  }
  sort_by_time(names);
  return names;
}

std::string path_states_text(const std::array<uint64_t, kPathStates>& states) {
  std::string text;
  for (size_t i = 0; i < kPathStates; ++i) {
    if (states[i] == 0) continue;
    absl::StrAppend(&text, text.empty() ? "" : ", ",
                    std::string(path_state_name(static_cast<PathState>(i))), " ",
                    duration_text(states[i]));
  }
  return text;
}

std::string critical_states_text(const CriticalPath& path) {
  return path_states_text(path.state_sums());
}

}  // namespace arctrace::reader
