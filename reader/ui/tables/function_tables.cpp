#include <absl/strings/str_cat.h>

#include <algorithm>
#include <utility>

#include "reader/render/labels.hpp"
#include "reader/render/report_parts.hpp"
#include "reader/render/session_text.hpp"
#include "reader/report/group_view.hpp"
#include "reader/trace/text_escape.hpp"
#include "reader/ui/tables/cell_table.hpp"
#include "reader/ui/tables/sums_table.hpp"
#include "reader/ui/tables/trace_tables.hpp"

// The tables of a single function.

namespace arctrace::reader {
namespace {

constexpr const char* kSlowestHead = "Slowest calls";

std::unique_ptr<Table> slowest_to_read() {
  CellRow row;
  row.name = "Enter reads the trace again for them.";
  row.emphasis = RowEmphasis::kDim;
  row.action.kind = RowAction::Kind::kRead;
  return std::make_unique<CellTable>(kSlowestHead, std::vector<TableColumn>(),
                                     std::vector<CellRow>{std::move(row)}, std::nullopt);
}

// Returns the functions around a call.
std::string path_around(const SlowCall& call, FunctionLabels& labels) {
  std::string path;
  const size_t cut = call.path.size() - std::min(call.path.size(), kPathFunctionsMax);
  for (size_t i = cut; i + 1 < call.path.size(); ++i) {
    absl::StrAppend(&path, path.empty() ? "in " : " > ", labels.text(call.path[i]));
  }
  return path;
}

}  // namespace

// The arcs of all functions are made at once, when the first one is shown.
const FunctionArcs* TraceTables::arcs_of(FunctionId function) {
  if (!arcs_.has_value()) {
    arcs_ = function_arcs(*all().tree, facts_.replay.functions(), all().root,
                          SortKey::kEntry);
  }
  const auto found = std::find_if(
      arcs_->begin(), arcs_->end(),
      [&](const FunctionArcs& arcs) { return arcs.own.function == function; });
  return found == arcs_->end() ? nullptr : &*found;
}

std::unique_ptr<Table> TraceTables::function_facts(const FunctionArcs& arcs) {
  const FunctionTotal& total = arcs.own;
  std::vector<TextLine> lines;
  lines.push_back({labels_.text(total.function), RowEmphasis::kBold});
  std::string where = total_notes(total, labels_);
  const std::string line = facts_.replay.resolver().source_line(total.function);
  if (!line.empty()) absl::StrAppend(&where, ", ", escaped(line));
  if (!where.empty()) {
    where.erase(0, where.find_first_not_of(", "));
    lines.push_back({std::move(where), RowEmphasis::kPlain});
  }
  const SumColumns columns(facts_.replay.known_times(), true);
  const RowSums sums{total.calls,    total.self_ns,
                     total.total_ns, (*all().tree)[all().root].total_ns,
                     total.cpu,      facts_.calls.times().find(all(), total.function)};
  std::string text;
  for (size_t i = 0; i < columns.types.size(); ++i) {
    absl::StrAppend(&text, i == 0 ? "" : ", ", columns.columns[i].head, " ",
                    column_text(columns.types[i], sums));
  }
  lines.push_back({std::move(text), RowEmphasis::kPlain});
  return std::make_unique<TextTable>(std::move(lines));
}

std::unique_ptr<Table> TraceTables::slowest_calls(const SlowestOfFunction& slowest) {
  const Replay& replay = facts_.replay;
  const bool has_ready = replay.known_times() == KnownTimes::kReady;
  std::vector<TableColumn> columns = {{"Duration", 11, 0, true}, {"Self", 11, 3, true}};
  if (replay.has_dispatches()) {
    columns.push_back({"On CPU", 11, 4, true});
    if (has_ready) {
      columns.push_back({"Blocked", 11, 1, true});
      columns.push_back({"No CPU", 11, 6, true});
    } else {
      columns.push_back({"Off CPU", 11, 1, true});
    }
  }
  columns.push_back({"Start", 14, 2, true});
  columns.push_back({"Thread", 16, 5, true});
  std::vector<CellRow> rows;
  for (const SlowCall& call : slowest.calls) {
    CellRow& row = rows.emplace_back();
    row.cells = {Cell::time(call.frame.duration_ns), Cell::time(call.frame.self_ns)};
    if (replay.has_dispatches()) {
      row.cells.push_back(Cell::time(call.frame.cpu.cpu_ns));
      if (has_ready) {
        row.cells.push_back(Cell::time(call.frame.cpu.blocked_ns()));
        row.cells.push_back(Cell::time(call.frame.cpu.ready_ns));
      } else {
        row.cells.push_back(Cell::time(call.frame.cpu.off_ns));
      }
    }
    row.cells.push_back(Cell::moment(call.frame.start_ns));
    row.cells.push_back(
        Cell::word(thread_ids_text(replay.definitions(), call.frame.thread)));
    row.name = absl::StrCat(labels_.text(call.frame.function), call.args, call.retval);
    row.notes = not_known_text(call.frame.cpu.unknown_ns) + flags_text(call.frame.flags);
    if (std::string path = path_around(call, labels_); !path.empty()) {
      CellRow& below = row.below.emplace_back();
      below.name = std::move(path);
      below.emphasis = RowEmphasis::kDim;
    }
  }
  return std::make_unique<CellTable>(
      slowest.count == slowest.calls.size()
          ? std::string(kSlowestHead)
          : absl::StrCat(kSlowestHead, ", ", slowest.calls.size(), " of ",
                         grouped_text(slowest.count)),
      std::move(columns), std::move(rows), TableSort{0, false});
}

TableList TraceTables::function(FunctionId function, const SlowestOfFunction* slowest) {
  const FunctionArcs* arcs = arcs_of(function);
  if (arcs == nullptr) return nothing_to_show();
  const SumsOfAll sums{all(), facts_.calls.times(), facts_.replay.known_times()};
  TableList tables;
  tables.push_back(function_facts(*arcs));
  tables.push_back(std::make_unique<ArcsTable>("Callers", arcs->parents, sums, labels_));
  if (!arcs->children.empty()) {
    tables.push_back(
        std::make_unique<ArcsTable>("Callees", arcs->children, sums, labels_));
  }
  tables.push_back(slowest == nullptr ? slowest_to_read() : slowest_calls(*slowest));
  return tables;
}

}  // namespace arctrace::reader
