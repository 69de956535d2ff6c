#include <absl/strings/str_cat.h>
#include <absl/strings/str_split.h>

#include <functional>
#include <utility>

#include "reader/analysis/kind_totals.hpp"
#include "reader/render/labels.hpp"
#include "reader/trace/text_escape.hpp"
#include "reader/ui/tables/cell_table.hpp"
#include "reader/ui/tables/sums_table.hpp"
#include "reader/ui/tables/trace_tables.hpp"

// The tables of the summary.

namespace arctrace::reader {
namespace {

constexpr size_t kHottestMax = 10;

// A section of the report's summary, made anew for each width.
class SectionTable : public Table {
 public:
  using Make = std::function<SummarySection(const TextStyle& style)>;

  explicit SectionTable(Make make) : make_(std::move(make)) { fit(0); }

  std::string head() const override { return section_.head; }
  std::span<const TableColumn> columns() const override { return {}; }
  size_t rows() const override { return lines_.size(); }
  std::string cell(size_t /*row*/, size_t /*column*/) const override { return {}; }
  RowName name(size_t row) override {
    RowName name;
    name.text = lines_[row];
    return name;
  }
  void fit(size_t width) override {
    if (width == width_) return;
    width_ = width;
    TextStyle style;
    style.width = width;
    section_ = make_(style);
    lines_ = section_.lines();
  }

 private:
  const Make make_;
  size_t width_ = SIZE_MAX;
  SummarySection section_;
  std::vector<std::string> lines_;  // of the section
};

std::vector<TextLine> lines_of(const SummarySection& section) {
  std::vector<TextLine> lines;
  if (!section.head.empty()) lines.push_back({section.head, RowEmphasis::kBold});
  for (const std::string& row : section.lines())
    lines.push_back({row, RowEmphasis::kPlain});
  return lines;
}

std::unique_ptr<Table> parts_table(const SummaryFacts& facts) {
  const bool has_cpu = facts.replay.has_dispatches();
  const bool has_ready = facts.replay.known_times() == KnownTimes::kReady;
  std::vector<TableColumn> columns = {{"Time", 11, 0, true}, {"%", 8, 1, false}};
  if (has_cpu) {
    columns.push_back({"On CPU", 11, 3, true});
    columns.push_back({has_ready ? "Blocked" : "Off CPU", 11, 2, true});
    if (has_ready) columns.push_back({"No CPU", 11, 5, true});
  }
  columns.push_back({"Calls", 11, 4, true});
  std::vector<CellRow> rows;
  for (const TimePart& part : time_parts(*facts.all.tree, facts.replay, facts.all.root)) {
    CellRow& row = rows.emplace_back();
    row.cells = {Cell::time(part.self_ns), Cell::share(part.self_ns, facts.all_ns())};
    if (has_cpu) {
      row.cells.push_back(Cell::time(part.cpu.cpu_ns));
      row.cells.push_back(
          Cell::time(has_ready ? part.cpu.blocked_ns() : part.cpu.off_ns));
      if (has_ready) row.cells.push_back(Cell::time(part.cpu.ready_ns));
    }
    row.cells.push_back(Cell::count_or_none(part.calls));
    row.name = escaped(part.name);
    row.notes = not_known_text(part.cpu.unknown_ns) + within_text(part.within_ns());
  }
  return std::make_unique<CellTable>("Spent on", std::move(columns), std::move(rows),
                                     TableSort{0, false});
}

}  // namespace

SummaryFacts TraceTables::summary_facts(const TreeGroup& group) {
  return {facts_.replay,
          facts_.session,
          facts_.summary,
          group,
          facts_.calls.times(),
          facts_.calls.ends(),
          facts_.calls.log(),
          serving_,
          nullptr,
          facts_.gaps};
}

TableList TraceTables::summary() {
  if (is_empty()) return nothing_to_show();
  const SummaryFacts facts = summary_facts(all());
  TableList tables;
  std::vector<TextLine> head = lines_of(head_section(facts, labels_, {}));
  if (!head.empty()) head.front().emphasis = RowEmphasis::kBold;
  if (std::string frames = frame_totals_text(facts_.replay.totals()); !frames.empty()) {
    head.push_back({std::move(frames), RowEmphasis::kPlain});
  }
  tables.push_back(std::make_unique<TextTable>(std::move(head)));
  for (const SummarySection& section :
       {crash_section(facts, labels_, {}), other_crashes_section(facts, labels_, {})}) {
    std::vector<TextLine> lines = lines_of(section);
    if (!lines.empty()) tables.push_back(std::make_unique<TextTable>(std::move(lines)));
  }
  auto critical = std::make_unique<SectionTable>([this](const TextStyle& style) {
    return critical_section(summary_facts(all()), labels_, style);
  });
  if (critical->rows() != 0) tables.push_back(std::move(critical));
  auto serving = std::make_unique<SectionTable>([this](const TextStyle& style) {
    return serving_section(summary_facts(all()), labels_, style);
  });
  if (serving->rows() != 0) tables.push_back(std::move(serving));
  const TreeGroup& busy = busy_.group();
  tables.push_back(parts_table(summary_facts(busy)));
  std::vector<FunctionTotal> totals =
      function_totals(*busy.tree, facts_.replay.functions(), busy.root, SortKey::kEntry);
  tables.push_back(std::make_unique<FunctionsTable>(
      "Hottest functions", std::move(totals),
      SumsOfAll{busy, facts_.calls.times(), facts_.replay.known_times()}, labels_,
      Column::kSelf, kHottestMax));
  auto paths = std::make_unique<SectionTable>([this](const TextStyle& style) {
    return paths_section(summary_facts(busy_.group()), labels_, style);
  });
  if (paths->rows() != 0) tables.push_back(std::move(paths));
  if (facts_.gaps != nullptr) {
    std::vector<TextLine> lines;
    const std::vector<std::string> rows =
        absl::StrSplit(facts_.gaps->text(), '\n', absl::SkipEmpty());
    lines.reserve(rows.size());
    for (const std::string& row : rows) lines.push_back({row, RowEmphasis::kPlain});
    if (!lines.empty()) tables.push_back(std::make_unique<TextTable>(std::move(lines)));
  }
  return tables;
}

}  // namespace arctrace::reader
