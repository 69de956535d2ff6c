// Parts of the views that are tables of sums by function: the rows that are shown, the
// head of a group, and a function's notes and members.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "reader/analysis/function_times.hpp"
#include "reader/analysis/function_totals.hpp"
#include "reader/render/report_parts.hpp"

namespace arctrace::reader {

// Removes the rows that `options` hides and returns how many. `total_ns_of(row)` is what
// options.min_percent is compared with.
template <class Row, class TotalOf>
uint64_t hide_rows(std::vector<Row>& rows, uint64_t all_ns, const ViewOptions& options,
                   TotalOf total_ns_of) {
  const size_t before = rows.size();
  std::erase_if(rows, [&](const Row& row) {
    return !is_large_enough(total_ns_of(row), all_ns, options);
  });
  if (rows.size() > options.limit) {
    rows.erase(rows.begin() + static_cast<std::ptrdiff_t>(options.limit), rows.end());
  }
  return before - rows.size();
}

// The line above a group's table, and the time that is in no function.
std::string group_head(const TreeGroup& group, Grouping grouping, const TextStyle& style);

// " in lua"; empty for a function without a module.
std::string module_note(FunctionId function, const FunctionLabels& labels);
// What was unusual with the calls: " [recursion to level 3] [open]".
std::string calls_note(const FunctionTotal& total);
// Both, and what was left out of the calls.
std::string total_notes(const FunctionTotal& total, FunctionLabels& labels);

// Members name, module, recorded, calls, base_ns, cum_ns, times on and off the CPU, and
// what recording cost.
void write_total_json(const FunctionTotal& total, FunctionLabels& labels,
                      const Replay& replay, JsonWriter& json);

// Member "functions": a row for each function of the group that `options` show, with the
// sums and the times of its calls.
void write_functions_json(const TreeGroup& group, const FunctionTimes& times,
                          const ViewOptions& options, const Replay& replay,
                          FunctionLabels& labels, JsonWriter& json);

// Calls `write_rows` for each group: within the array of groups, or for one group that is
// all threads, directly.
template <class WriteRows>
void for_groups_json(const TreeGroups& groups, JsonWriter& json, WriteRows write_rows) {
  if (groups.grouping() == Grouping::kAll) {
    write_rows(groups.groups().front());
    return;
  }
  json.key(grouping_key(groups.grouping())).begin_array();
  for (const TreeGroup& group : groups.groups()) {
    begin_group_json(group, groups.grouping(), json);
    write_rows(group);
    json.end();
  }
  json.end();
}

}  // namespace arctrace::reader
