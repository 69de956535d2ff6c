// Parts that several views of a report share: the options of their tables, columns of
// sums, titles of groups, members of functions and times, and the last column with its
// name and notes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "reader/analysis/function_times.hpp"
#include "reader/analysis/tree_groups.hpp"
#include "reader/render/labels.hpp"
#include "reader/render/text_style.hpp"
#include "reader/replay/call_tree.hpp"
#include "reader/streams/json_writer.hpp"

namespace arctrace::reader {

// The options that every view of a report understands.

// The columns of tables of sums (ColumnType).
enum class Column : uint8_t {
  kCalls,
  kSelfPercent,
  kTotalPercent,
  kSelf,
  kTotal,
  kOnCpu,
  kOffCpu,
  kBlocked,
  kNoCpu,
  kAvg,
  kMin,
  kP50,
  kP90,
  kP99,
  kP999,
  kMax,
};

struct ViewOptions {
  SortKey sort = SortKey::kTotal;
  uint64_t limit = UINT64_MAX;  // rows of a table
  double min_percent =
      0;               // rows with less of the total, and what is below them, are hidden
  bool lines = false;  // file:line of functions
  std::vector<Column> columns;  // of tables of sums; empty: the default ones
  TextStyle style;
};

// The columns of tables of sums: which there are, and which of them a table shows on a
// terminal of some width.
struct ColumnType {
  Column column;
  const char* name;  // the value of --columns
  const char* head;
  size_t width;
  uint8_t rank;      // the column with the largest one is the first to be dropped
  bool by_default;   // shown if --columns does not say otherwise, and the next two hold
  KnownTimes needs;  // what has to be known at least
  KnownTimes most;   // if more is known, other columns tell it
  bool needs_times;  // it is about the times of single calls
};

// All columns, in the order in which they stand by default.
std::span<const ColumnType> column_types();

// The values of a row.
struct RowSums {
  uint64_t calls = 0, self_ns = 0, total_ns = 0;
  uint64_t all_ns = 0;  // what is 100 % of the shares
  CpuTime cpu;
  const DurationHistogram* times = nullptr;  // null: no call is timed
};

// Returns what a column shows of a row: a number of calls, or of ns; nothing if that is
// not known. column_text() has a dash for that.
std::optional<uint64_t> column_value(Column column, const RowSums& sums);
std::string column_text(Column column, const RowSums& sums);

// The columns of one table.
class Columns {
 public:
  // Chooses the columns that options.columns wants, or the default ones. If the
  // terminal's width is known, columns are dropped until `other` columns, which the table
  // has beside them, and a name fit.
  Columns(const ViewOptions& options, KnownTimes known, size_t other);

  // Shows the column by which the table is sorted in one unit, that of its largest time,
  // which its head then names.
  void set_scale(SortKey sort, uint64_t largest_ns);

  // The heads of the columns, each right-aligned.
  std::string head() const;
  void append(std::string& row, const RowSums& sums) const;

  // A line that names the columns for which there was no space; empty if all have it.
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

// "lua 100/101" for a thread, "lua 100, 3 threads" for a process, "3 threads" for all.
std::string group_title(const TreeGroup& group, Grouping grouping);
// ", ended up to 14 ms earlier" for a thread whose end is known to within that; else
// nothing.
std::string end_text(const TreeGroup& group);

// Opens an object for a group, with members that say which it is: pid, tid, name,
// threads.
void begin_group_json(const TreeGroup& group, Grouping grouping, JsonWriter& json);

// "threads", "processes" or "all".
const char* grouping_key(Grouping grouping);

// Members name, module (a path, or empty) and line (if it is asked for and known).
void write_function_json(FunctionId function, FunctionLabels& labels, JsonWriter& json);

// Members calls, base_ns (self) and cum_ns (total).
void write_sums_json(uint64_t calls, uint64_t self_ns, uint64_t total_ns,
                     JsonWriter& json);

// Members cpu_ns, off_cpu_ns, ready_ns (off the CPU, and could have run) and switches of
// a call with all that it called: those that are known.
void write_cpu_json(const CpuTime& cpu, KnownTimes known, JsonWriter& json);

// Member overhead_ns: what recording took of base_ns, before that was corrected; if it is
// known.
void write_overhead_json(uint64_t overhead_ps, const Replay& replay, JsonWriter& json);

// " [recording]" for a row of which recording is half or more; else nothing. In a
// corrected report, the rest of the row is then no more than was taken off.
std::string overhead_note(uint64_t self_ns, uint64_t overhead_ps, const Replay& replay);
// "wall", "cpu", "off-cpu": the value of --clock, and the word in JSON.
const char* clock_name(ReportClock clock);

// " [132 ms, in no sum]" for the tracer's own work, of which that is all that a table
// has; else nothing. Such a row has no overhead_note().
std::string own_work_note(FunctionId function, uint64_t overhead_ps,
                          const Replay& replay);
// The line that says what overhead_note() means, to follow a table that has one; else
// empty.
std::string overhead_legend(bool has_note, const Replay& replay);

// Whether a row is as large as options.min_percent demands.
bool is_large_enough(uint64_t total_ns, uint64_t all_ns, const ViewOptions& options);

// Members avg_ns, min_ns, max_ns, p50_ns, p90_ns, p99_ns and p999_ns: of those calls
// whose times are known; null where there are too few of them. `times`: null if there are
// none.
void write_times_json(const DurationHistogram* times, JsonWriter& json);

// Appends the columns of time on and off the CPU, as far as the kernel recorded it: off
// the CPU a thread is blocked, or could run and has no CPU.
void append_cpu(std::string& out, const CpuTime& cpu, KnownTimes known);
const char* cpu_head(KnownTimes known);

// Ends a row whose columns are in `row` with a name and its notes, cut to fit.
void append_name(std::string& row, const std::string& name, const std::string& notes,
                 bool hot, const TextStyle& style);

// Whether self_ns is a share of all_ns that is worth a colour.
bool is_hot(uint64_t self_ns, uint64_t all_ns);

// A line that says how many rows a table does not show; empty for 0.
std::string hidden_rows_text(uint64_t rows);

}  // namespace arctrace::reader
