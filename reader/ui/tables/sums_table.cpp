#include "reader/ui/tables/sums_table.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

#include "reader/render/report_parts.hpp"
#include "reader/report/group_view.hpp"

namespace arctrace::reader {
namespace {

// The columns of a report are wider than their values; a screen does not have the space.
constexpr size_t kSumWidthMax = 11;

// The caller of the outermost functions.
constexpr const char* kNoCaller = "[thread]";

}  // namespace

SumColumns::SumColumns(KnownTimes known, bool has_times) {
  for (const ColumnType& type : column_types()) {
    if (known < type.needs || known > type.most) continue;
    if (type.needs_times && !has_times) continue;
    const bool is_share =
        type.column == Column::kSelfPercent || type.column == Column::kTotalPercent;
    types.push_back(type.column);
    columns.push_back(
        {type.head, std::min(type.width, kSumWidthMax), type.rank, !is_share});
  }
}

size_t SumColumns::find(Column column) const {
  return static_cast<size_t>(std::find(types.begin(), types.end(), column) -
                             types.begin());
}

RowAction SumsTable::action(size_t row) const {
  const FunctionId leads_to = function(order_[row]);
  if (leads_to == kRootFunction) return {};
  return {RowAction::Kind::kFunction, leads_to};
}

void SumsTable::start(size_t rows, Column sorted_by, size_t limit) {
  order_.resize(rows);
  std::iota(order_.begin(), order_.end(), size_t{0});
  set_sort({columns_.find(sorted_by), false});
  if (rows > limit) order_.resize(limit);
}

void SumsTable::set_sort(TableSort sort) {
  sort_ = sort;
  // Rows without a value come last; the value of a name is not used.
  struct Key {
    bool is_known;
    uint64_t value;
    FunctionId function;
    size_t number;
  };
  const bool is_by_name = sort.column == columns_.types.size();
  std::vector<Key> keys;
  keys.reserve(order_.size());
  for (const size_t number : order_) {
    std::optional<uint64_t> value;
    if (!is_by_name) value = column_value(columns_.types[sort.column], sums(number));
    keys.push_back({value.has_value(), value.value_or(0), function(number), number});
  }
  const auto comes_before = [&](const Key& a, const Key& b) {
    if (is_by_name) return labels_[a.function].name < labels_[b.function].name;
    if (a.is_known != b.is_known) return a.is_known;
    return a.value > b.value;
  };
  std::sort(keys.begin(), keys.end(), [&](const Key& a, const Key& b) {
    const Key& first = sort.is_reversed ? b : a;
    const Key& second = sort.is_reversed ? a : b;
    if (comes_before(first, second)) return true;
    return !comes_before(second, first) && a.function < b.function;
  });
  for (size_t i = 0; i < keys.size(); ++i) order_[i] = keys[i].number;
}

FunctionsTable::FunctionsTable(std::string head, std::vector<FunctionTotal> totals,
                               const SumsOfAll& all, FunctionLabels& labels,
                               Column sorted_by, size_t limit)
    : SumsTable(std::move(head), SumColumns(all.known, true), labels),
      totals_(std::move(totals)),
      all_(all) {
  start(totals_.size(), sorted_by, limit);
}

RowSums FunctionsTable::sums(size_t number) const {
  const FunctionTotal& total = totals_[number];
  return {total.calls,    total.self_ns,
          total.total_ns, (*all_.group.tree)[all_.group.root].total_ns,
          total.cpu,      all_.times.find(all_.group, total.function)};
}

RowName FunctionsTable::name(size_t row) {
  const FunctionTotal& total = totals_[number(row)];
  RowName name;
  name.text = labels().text(total.function);
  name.notes = calls_note(total) + labels().recorded_note(total.function);
  name.where = module_note(total.function, labels());
  if (is_hot(total.self_ns, (*all_.group.tree)[all_.group.root].total_ns)) {
    name.emphasis = RowEmphasis::kHot;
  }
  return name;
}

ArcsTable::ArcsTable(std::string head, std::vector<Arc> arcs, const SumsOfAll& all,
                     FunctionLabels& labels)
    : SumsTable(std::move(head), SumColumns(all.known, false), labels),
      arcs_(std::move(arcs)),
      all_(all) {
  start(arcs_.size(), Column::kTotal);
}

RowSums ArcsTable::sums(size_t number) const {
  const Arc& arc = arcs_[number];
  return {arc.calls,    arc.self_ns,
          arc.total_ns, (*all_.group.tree)[all_.group.root].total_ns,
          arc.cpu,      nullptr};
}

RowName ArcsTable::name(size_t row) {
  const FunctionId of = arcs_[number(row)].function;
  RowName name;
  name.text = of == kRootFunction ? kNoCaller : labels().text(of);
  return name;
}

}  // namespace arctrace::reader
