#include "reader/render/columns.hpp"

#include <absl/strings/str_cat.h>

#include <algorithm>

namespace arctrace::reader {
namespace {

// What remains for a name and the blanks before it.
constexpr size_t kNameColumns = 24;

constexpr ColumnType kColumnTypes[] = {
    {Column::kCalls, "calls", "Calls", 12, 3, true, false, false},
    {Column::kSelfPercent, "self%", "%Self", 8, 9, true, false, false},
    {Column::kTotalPercent, "total%", "%Total", 8, 6, true, false, false},
    {Column::kSelf, "self", "Self", 13, 2, true, false, false},
    {Column::kTotal, "total", "Total", 13, 1, true, false, false},
    {Column::kOnCpu, "on-cpu", "On CPU", 13, 5, true, true, false},
    {Column::kOffCpu, "off-cpu", "Off CPU", 13, 4, true, true, false},
    {Column::kAvg, "avg", "Avg", 13, 8, false, false, true},
    {Column::kMin, "min", "Min", 13, 13, false, false, true},
    {Column::kP50, "p50", "p50", 13, 10, false, false, true},
    {Column::kP90, "p90", "p90", 13, 11, false, false, true},
    {Column::kP99, "p99", "p99", 13, 7, false, false, true},
    {Column::kP999, "p99.9", "p99.9", 13, 12, false, false, true},
    {Column::kMax, "max", "Max", 13, 7, false, false, true},
};

const ColumnType& type_of(Column column) {
  return *std::find_if(std::begin(kColumnTypes), std::end(kColumnTypes),
                       [&](const ColumnType& type) { return type.column == column; });
}

std::optional<uint64_t> time_value(Column column, const DurationHistogram& times) {
  switch (column) {
    case Column::kAvg:
      return times.average_ns();
    case Column::kMin:
      return times.min_ns();
    case Column::kP50:
      return times.quantile_ns(500);
    case Column::kP90:
      return times.quantile_ns(900);
    case Column::kP99:
      return times.quantile_ns(990);
    case Column::kP999:
      return times.quantile_ns(999);
    default:
      return times.max_ns();
  }
}

}  // namespace

std::span<const ColumnType> column_types() { return kColumnTypes; }

std::optional<uint64_t> column_value(Column column, const RowSums& sums) {
  switch (column) {
    case Column::kCalls:
      return sums.calls;
    case Column::kSelfPercent:
    case Column::kSelf:
      return sums.self_ns;
    case Column::kTotalPercent:
    case Column::kTotal:
      return sums.total_ns;
    case Column::kOnCpu:
      return sums.cpu.cpu_ns;
    case Column::kOffCpu:
      return sums.cpu.off_ns;
    default:
      break;
  }
  if (sums.times == nullptr) return std::nullopt;
  return time_value(column, *sums.times);
}

std::string column_text(Column column, const RowSums& sums) {
  const std::optional<uint64_t> value = column_value(column, sums);
  if (!value.has_value()) return "-";
  if (column == Column::kCalls) return grouped_text(*value);
  if (column == Column::kSelfPercent || column == Column::kTotalPercent) {
    return percent_text(*value, sums.all_ns);
  }
  return type_of(column).needs_times ? call_time_text(*value) : duration_text(*value);
}

Columns::Columns(const ViewOptions& options, bool has_dispatches, size_t other) {
  const bool is_default = options.columns.empty();
  if (is_default) {
    for (const ColumnType& type : kColumnTypes) {
      if (type.by_default && (has_dispatches || !type.needs_dispatches)) {
        shown_.push_back(&type);
      }
    }
  } else {
    for (const Column column : options.columns) shown_.push_back(&type_of(column));
  }
  if (options.style.width == 0) return;
  size_t used = other + kNameColumns;
  for (const ColumnType* type : shown_) used += type->width;
  while (used > options.style.width && shown_.size() > 1) {
    const auto least = std::max_element(
        shown_.begin(), shown_.end(),
        [](const ColumnType* a, const ColumnType* b) { return a->rank < b->rank; });
    used -= (*least)->width;
    if (!is_default) dropped_.push_back(*least);
    shown_.erase(least);
  }
}

void Columns::set_scale(SortKey sort, uint64_t largest_ns) {
  scaled_.reset();
  if (sort == SortKey::kSelf) scaled_ = Column::kSelf;
  if (sort == SortKey::kTotal) scaled_ = Column::kTotal;
  scale_ = time_scale(largest_ns);
}

std::string Columns::head() const {
  std::string head;
  for (const ColumnType* type : shown_) {
    append_right(head,
                 is_scaled(type->column) ? absl::StrCat(type->head, " ", scale_.unit)
                                         : std::string(type->head),
                 type->width);
  }
  return head;
}

void Columns::append(std::string& row, const RowSums& sums) const {
  for (const ColumnType* type : shown_) {
    append_right(row,
                 is_scaled(type->column)
                     ? scaled_text(*column_value(type->column, sums), scale_)
                     : column_text(type->column, sums),
                 type->width);
  }
}

std::string Columns::dropped_text() const {
  if (dropped_.empty()) return {};
  std::string text = "  (no room for";
  for (const ColumnType* type : dropped_) {
    absl::StrAppend(&text, type == dropped_.front() ? " " : ", ", type->name);
  }
  return text + ": --wide shows all)\n";
}

bool need_times(std::span<const Column> columns) {
  return std::any_of(columns.begin(), columns.end(),
                     [](Column column) { return type_of(column).needs_times; });
}

}  // namespace arctrace::reader
