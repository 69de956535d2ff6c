// Parts that several views of a report write alike: titles of groups, members of
// functions and times, columns of sums, the last column with its name and notes.
#pragma once

#include <cstdint>
#include <string>

#include "reader/analysis/duration_histogram.hpp"
#include "reader/analysis/tree_groups.hpp"
#include "reader/render/function_labels.hpp"
#include "reader/render/view_options.hpp"
#include "reader/streams/json_writer.hpp"

namespace arctrace::reader {

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
// corrected report, what is left of the row is then no more than was taken off.
std::string overhead_note(uint64_t self_ns, uint64_t overhead_ps, const Replay& replay);
// The line that says what the note means, to follow a table that has one; else empty.
std::string overhead_legend(bool has_note, const Replay& replay);

// Whether a row is as large as options.min_percent demands.
bool is_large_enough(uint64_t total_ns, uint64_t all_ns, const ViewOptions& options);

// Members avg_ns, min_ns, max_ns, p50_ns, p90_ns, p99_ns and p999_ns: of those calls
// whose times are known; null where there are too few of them. `times`: null if there are
// none.
void write_times_json(const DurationHistogram* times, JsonWriter& json);

// Appends the columns of time on and off the CPU, if the kernel recorded it.
void append_cpu(std::string& out, const CpuTime& cpu);
inline constexpr const char* kCpuHead = "       On CPU      Off CPU";

// Ends a row whose columns are in `row` with a name and its notes, cut to fit.
void append_name(std::string& row, const std::string& name, const std::string& notes,
                 bool hot, const TextStyle& style);

// Whether self_ns is a share of all_ns that is worth a colour.
bool is_hot(uint64_t self_ns, uint64_t all_ns);

// A line that says how many rows a table does not show; empty for 0.
std::string hidden_rows_text(uint64_t rows);

}  // namespace arctrace::reader
