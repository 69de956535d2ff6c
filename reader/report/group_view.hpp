// The base of views that are made from the finished call trees, and the parts that these
// share: rows of functions with their sums, and rows and JSON of whole trees.
#pragma once

#include <absl/functional/function_ref.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "reader/analysis/function_times.hpp"
#include "reader/analysis/function_totals.hpp"
#include "reader/analysis/tree_groups.hpp"
#include "reader/render/labels.hpp"
#include "reader/render/report_parts.hpp"
#include "reader/report/view.hpp"
#include "reader/streams/json_writer.hpp"

namespace arctrace::reader {

// The base of views that are made from the finished call trees: a table for each group of
// threads, and of the CPUs' `Interrupt` threads. They need no listener.
class GroupView : public View {
 public:
  explicit GroupView(const ViewSettings& settings)
      : options_(settings.options), grouping_(settings.grouping) {}

  absl::Status write_text(Replay& replay, const WriteText& write) final;
  absl::Status write_json(Replay& replay, JsonWriter& json) final;

 protected:
  virtual void write_groups_text(const TreeGroups& groups, Replay& replay,
                                 const WriteText& write) = 0;
  virtual void write_groups_json(const TreeGroups& groups, Replay& replay,
                                 JsonWriter& json) = 0;
  // Whether filters of calls leave groups out of the text in which no call passes them,
  // which a line says; false: it has all of them, for programs that read it.
  virtual bool shows_calls_only() const { return true; }

  const ViewOptions options_;

 private:
  TreeGroups groups_of(const Replay& replay) const;

  const Grouping grouping_;
};

// Removes the rows that `options` hides and returns how many. options.min_percent is
// compared with `total_ns_of(row)`.
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
// Notes on what was unusual with the calls: " [recursion to level 3] [open]".
std::string calls_note(const FunctionTotal& total);
// Returns both notes, and the one about calls that were left out.
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

// The rows of views that show whole call trees: tree and log-rt. Calls `row` for the
// nodes that `options` shows, until it returns false. Returns how many subtrees are
// hidden: those that are too small, and those met after the limit of rows.
uint64_t walk_rows(const TreeGroup& group, const Functions& functions,
                   const ViewOptions& options,
                   absl::FunctionRef<bool(const TreePosition&)> row);

// Call trees in JSON: nodes within nodes, as deep as parsers of JSON read.

// Writes member `key`: the root's name, calls, base_ns, cum_ns and children, or null if
// the options hide even the root. Nodes are nested 200 levels deep; deeper ones stand in
// a member "deeper" of the object that is open, in rows that name their parents.
void write_tree_json(const char* key, const TreeGroup& group, const ViewOptions& options,
                     const Replay& replay, FunctionLabels& labels, JsonWriter& json);

// Writes member "threads", "processes" or "all", an array: for each tree the members that
// say which it is, and its "root".
void write_trees_json(const TreeGroups& groups, const ViewOptions& options,
                      const Replay& replay, FunctionLabels& labels, JsonWriter& json);

}  // namespace arctrace::reader
