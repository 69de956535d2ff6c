// The columns of tables of sums: which there are, and which of them a table shows on a
// terminal of some width.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "reader/analysis/duration_histogram.hpp"
#include "reader/render/view_options.hpp"
#include "reader/replay/cpu_time.hpp"

namespace arctrace::reader {

struct ColumnType {
  Column column;
  const char* name;  // the value of --columns
  const char* head;
  size_t width;
  uint8_t rank;           // the column with the largest one is the first to be dropped
  bool by_default;        // shown if --columns does not say otherwise
  bool needs_dispatches;  // by default it is shown only if the kernel recorded these
  bool needs_times;       // it is about the times of single calls
};

// All columns, in the order in which they stand by default.
std::span<const ColumnType> column_types();

// What a row is about.
struct RowSums {
  uint64_t calls = 0, self_ns = 0, total_ns = 0;
  uint64_t all_ns = 0;  // what the shares are of
  CpuTime cpu;
  const DurationHistogram* times = nullptr;  // null: no call is timed
};

// What a column shows of a row: a number of calls, or of ns; nothing where that is not
// known. column_text() has a dash for that.
std::optional<uint64_t> column_value(Column column, const RowSums& sums);
std::string column_text(Column column, const RowSums& sums);

// The columns of one table.
class Columns {
 public:
  // Those that options.columns wants, or the default ones. If the terminal's width is
  // known, columns are dropped until `other` columns, which the table has beside them,
  // and a name fit.
  Columns(const ViewOptions& options, bool has_dispatches, size_t other);

  // Shows the column by which the table is sorted in one unit, that of its largest time,
  // which its head then names.
  void set_scale(SortKey sort, uint64_t largest_ns);

  // The heads of the columns, each right-aligned.
  std::string head() const;
  void append(std::string& row, const RowSums& sums) const;

  // A line that names the columns for which there was no room; empty if all have it.
  // Default columns are dropped silently.
  std::string dropped_text() const;

 private:
  bool is_scaled(Column column) const {
    return scaled_.has_value() && column == *scaled_;
  }

  std::vector<const ColumnType*> shown_;
  std::vector<const ColumnType*> dropped_;  // of those that were asked for
  std::optional<Column> scaled_;
  TimeScale scale_{};
};

// Whether one of the columns is about the times of single calls.
bool need_times(std::span<const Column> columns);

}  // namespace arctrace::reader
