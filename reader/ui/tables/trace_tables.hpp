// The tables of a trace: those of each view, and those of a single function.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "reader/analysis/function_totals.hpp"
#include "reader/analysis/slowest_calls.hpp"
#include "reader/analysis/tree_groups.hpp"
#include "reader/render/function_labels.hpp"
#include "reader/report/summary_lines.hpp"
#include "reader/ui/tables/table.hpp"
#include "reader/ui/tables/trace_calls.hpp"

namespace arctrace::reader {

using TableList = std::vector<std::unique_ptr<Table>>;

// The slowest calls of a function, and the number of all.
struct SlowestOfFunction {
  std::vector<SlowCall> calls;
  uint64_t count = 0;
};

// Makes the tables, which it must outlive. All numbers are those of `arctrace report`
// with the same filters.
class TraceTables {
 public:
  // `facts` and what they refer to must outlive this object.
  explicit TraceTables(const FinishedPass& facts);

  // As the view "summary" of a report, with all of its parts.
  TableList summary();
  TableList functions();
  TableList tree(Grouping grouping);
  TableList threads();
  TableList locks();
  TableList critical_path();
  // What is known of a function, its callers and callees, and its slowest calls. Null:
  // these have not been read yet.
  TableList function(FunctionId function, const SlowestOfFunction* slowest);

  // What the trace is of and what is missing in it, in one line. `has_trouble`: something
  // is missing.
  std::string status(bool& has_trouble) const;

  FunctionLabels& labels() { return labels_; }
  const FinishedPass& facts() const { return facts_; }

 private:
  const TreeGroup& all() const { return groups_.groups().front(); }
  bool is_empty() const { return facts_.replay.threads().empty(); }
  // `group`: all(), or what the time was spent on.
  SummaryFacts summary_facts(const TreeGroup& group);
  const FunctionArcs* arcs_of(FunctionId function);
  std::unique_ptr<Table> function_facts(const FunctionArcs& arcs);
  std::unique_ptr<Table> slowest_calls(const SlowestOfFunction& slowest);

  const FinishedPass facts_;
  FunctionLabels labels_;
  const TreeGroups groups_;  // all threads as one
  const Serving serving_;
  const BusyGroup busy_;
  std::optional<std::vector<FunctionArcs>> arcs_;
};

// The table that stands for all others if no thread passes the filters.
TableList nothing_to_show();

}  // namespace arctrace::reader
