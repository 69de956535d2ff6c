// The lines of the summary, section by section, on one screen.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "reader/analysis/function_times.hpp"
#include "reader/analysis/function_totals.hpp"
#include "reader/analysis/thread_ends.hpp"
#include "reader/analysis/work_loops.hpp"
#include "reader/render/gap_list.hpp"
#include "reader/render/labels.hpp"
#include "reader/render/report_parts.hpp"
#include "reader/streams/schedule_log.hpp"
#include "reader/trace/process_identities.hpp"
#include "reader/trace/session.hpp"

namespace arctrace::reader {

// Rows that share a head, the most important ones first. Some are of several lines.
struct SummarySection {
  std::string head;  // may be empty
  std::vector<std::string> rows;
  // [n]: the row for all that is not in the first n rows, "others (12)"; empty if there
  // is nothing. It has an element for each number of rows: others.size() is rows.size() +
  // 1. If it is empty, no row is dropped.
  std::vector<std::string> others = {};
  size_t least = 1;                   // rows that stay
  std::vector<std::string> end = {};  // below all rows
  // The last line, which explains a mark, if a row that is left has the mark.
  std::string mark = {}, legend = {};

  // Returns the rows, the row for others, and what is below; without a newline.
  std::vector<std::string> lines() const;
  // Drops rows until there are `count` of them, as far as rows may be dropped.
  void cut(size_t count);
};

// "others (1,234)"
std::string others_name(uint64_t count);

// Drops the last rows of the longest sections until all have `max_lines` together, with
// an empty line before each but the first. The text has more lines if too few rows may be
// dropped.
std::string summary_text(std::vector<SummarySection> sections, size_t max_lines);

// The most rows of the table of functions.
inline constexpr size_t kFunctionsMax = 8;

// The facts from which the sections are made; null facts are not known.
struct SummaryFacts {
  Replay& replay;  // finished
  const Session* session;
  const Summary* summary;
  const TreeGroup& all;  // the group of all threads
  const FunctionTimes& times;
  const ThreadEnds& ends;
  ScheduleLog* log;  // null: it is not known which thread woke which
  const Serving& serving;
  const EnabledList* enabled = nullptr;
  const GapList* gaps = nullptr;
  // Modules without their files; null: source lines are not asked for.
  const std::vector<std::string>* symbol_findings = nullptr;
  // The files of the trace, as words of a command; null, as none: the one that is read by
  // default.
  const std::vector<std::string>* files = nullptr;
  bool has_debuginfod = false;  // debug files are downloaded

  // The time of all threads.
  uint64_t all_ns() const { return (*all.tree)[all.root].total_ns; }
};

// What the kernel took to take down a buffer that is its own memory, when programs had
// ended or executed others. It is in their time on the CPU, after their ends.
struct EndCost {
  uint64_t programs = 0, ns = 0;
};
// `session`: null: nothing is known.
EndCost end_cost(const Replay& replay, const Session* session);

// Returns the functions by self time, without the tracer's own work, whose time the head
// tells.
std::vector<FunctionTotal> hottest_functions(const SummaryFacts& facts);

// Returns a head, or a row, whose columns are in `row`, with its name and notes cut to
// fit. Both are without a newline.
std::string summary_head(const std::string& head, const TextStyle& style);
std::string summary_row(std::string row, const std::string& name,
                        const std::string& notes, bool hot, const TextStyle& style);

// Returns a path of functions as a row has it beside `used` columns: all of it if that
// was asked for.
std::string overview_path(const std::string& path, size_t used, const TextStyle& style);

// Returns the command line of the first program that was executed; empty if there is
// none.
std::vector<std::string> first_command(const Definitions& definitions);

// How many processes and threads the report is about, as the kernel counts them, whether
// the trace has their records or only their numbers. Threads of other programs that the
// kernel's records name do not count. `summary`: null: not known.
ProcessesAndThreads shown_counts(const Replay& replay, const Summary* summary);

// Returns the time from the start of the first replayed thread to the end of the last
// one.
uint64_t wall_ns(const Replay& replay);

// Returns the part of that in which some thread only started the tracer.
uint64_t own_work_wall_ns(const Replay& replay);

// "exit 0", "killed by signal 11 (Segmentation fault)"; empty if it is not known.
std::string end_text(const Session* session);

// Returns the signal that ended the command, also as a shell reports it (128 + n); 0:
// none.
int fatal_signal(const Session* session);
// Returns the signal that a function of the kernel's records stands for; 0: none.
int signal_number(const Function& function);
// "main > work > bad": the functions in which a program was, outermost first, cut to the
// innermost ones.
std::string crash_path_text(const std::vector<FunctionId>& path, FunctionLabels& labels);
// Returns whether a function of the kernel's records stands for that signal, for another
// one, or for none.
ThreadEnds::Signal signal_of(const Function& function, const Session* session);

// The section about the program as a whole (summary_lines.cpp).
SummarySection head_section(const SummaryFacts& facts, FunctionLabels& labels,
                            const TextStyle& style);

// The rows of that section about the recording: what it cost, how many records there are
// and what is missing, which functions and calls were left out.
std::vector<std::string> recording_rows(const SummaryFacts& facts, FunctionLabels& labels,
                                        const TextStyle& style);

// The rows about what recording cost the program, and the function with the most calls
// (summary_costs.cpp); empty if that is nothing, or not known. `recorded`: the calls that
// filters left out cost time, too, but there is no record of them.
std::vector<std::string> cost_rows(const SummaryFacts& facts,
                                   const RecordedStates& recorded);

// The section about where the program was when a signal ended it (summary_crash.cpp).
SummarySection crash_section(const SummaryFacts& facts, FunctionLabels& labels,
                             const TextStyle& style);
// Member "crash": an object with the signal that ended the command, and as far as they
// are known, its thread, whether that is only likely, its path and its last call. None if
// no signal did.
void write_crash_json(const SummaryFacts& facts, FunctionLabels& labels,
                      JsonWriter& json);

// The section about other programs that signals ended (summary_other_crashes.cpp), and
// the member "other_crashes", an array of objects with pid, name and, as far as they are
// known, signal, tid and path.
SummarySection other_crashes_section(const SummaryFacts& facts, FunctionLabels& labels,
                                     const TextStyle& style);
void write_other_crashes_json(const SummaryFacts& facts, FunctionLabels& labels,
                              JsonWriter& json);

// Whether a function has no name but its place in its module, such as "git+0x25c330".
bool is_nameless(const Function& function);

// "  what the program did before it was joined is not in the trace"; empty if all
// programs were there from their begin on (summary_hints.cpp).
std::string joined_text(const Definitions& definitions);

// The section about what to do next (summary_hints.cpp).
SummarySection hints_section(const SummaryFacts& facts, const TextStyle& style);

// The section about the steps on which the time from begin to end depended, for several
// processes that end by themselves (summary_paths.cpp). Empty for others.
SummarySection critical_section(const SummaryFacts& facts, FunctionLabels& labels,
                                const TextStyle& style);

// The section about the loops in which threads wait for work, and what they do with it
// (summary_paths.cpp).
SummarySection serving_section(const SummaryFacts& facts, FunctionLabels& labels,
                               const TextStyle& style);

// The sections with tables (summary_tables.cpp).
SummarySection parts_section(const SummaryFacts& facts, const TextStyle& style);
// The section instead of the tables, if there are too few calls for shares; else empty.
SummarySection few_calls_section(const SummaryFacts& facts, FunctionLabels& labels,
                                 const TextStyle& style);
SummarySection functions_section(const SummaryFacts& facts, FunctionLabels& labels,
                                 const TextStyle& style);
SummarySection paths_section(const SummaryFacts& facts, FunctionLabels& labels,
                             const TextStyle& style);
SummarySection threads_section(const SummaryFacts& facts, FunctionLabels& labels,
                               const TextStyle& style);

}  // namespace arctrace::reader
