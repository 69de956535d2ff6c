// The output of `arctrace diff`: functions before and after a change.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "reader/analysis/function_diff.hpp"
#include "reader/analysis/recorded_state.hpp"
#include "reader/render/report_parts.hpp"
#include "reader/streams/json_writer.hpp"
#include "reader/trace/session.hpp"

namespace arctrace::reader {

// One trace of a comparison.
struct DiffRun {
  std::string path;
  Summary summary;
  uint64_t wall_ns = 0;                // as the summary has it
  uint64_t own_work_ns = 0;            // what the tracer did in the threads
  uint64_t own_wall_ns = 0;            // the part of wall_ns in which it did
  uint64_t clock_ns = 0;               // of all threads, on the table's clock
  std::vector<CallsLeftOut> left_out;  // on purpose, while it was recorded

  uint64_t program_wall_ns() const { return wall_ns - own_wall_ns; }
};

struct DiffTable {
  const FunctionDiff& diff;
  std::vector<FunctionChange> changes;  // the shown ones, sorted
  std::vector<DiffRun> before, after;
  bool full_names = false;                 // functions are shown by their whole names
  ReportClock clock = ReportClock::kWall;  // that of the functions' times
};

// Writes a line for each side, one for the wall-clock time of all its threads without
// that in which the tracer worked, one for their time on another clock that is compared,
// and a row for each change within options.limit: self time before and after, difference,
// calls, the parts of the total time off the CPU if all runs have the kernel's records,
// and whether the difference is noise. With options.sort == kTotal it shows total instead
// of self.
void write_diff_text(const DiffTable& table, const ViewOptions& options,
                     const WriteText& write);

// Members "runs_a" and "runs_b", arrays of file, records, lost, duration_ns, wall_ns (all
// of it), arctrace_ns and arctrace_wall_ns (DiffRun::own_work_ns, own_wall_ns),
// clock_ns (the time of all threads on a "clock" other than "wall");
// "noise_known"; "clock", that of the functions' times ("wall", "cpu" or "off-cpu");
// "paired_programs", the file names before and after of programs that are
// compared as one, empty without; and "functions", an array of name, module, calls_a,
// calls_b, base_ns_a, base_ns_b, cum_ns_a, cum_ns_b, base_noise_ns and cum_noise_ns
// (null: not known), and if the kernel's records tell them off_cpu_ns_a, off_cpu_ns_b,
// ready_ns_a and ready_ns_b.
void write_diff_json(const DiffTable& table, const ViewOptions& options,
                     JsonWriter& json);

}  // namespace arctrace::reader
