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
  std::vector<CallsLeftOut> left_out;  // on purpose, while it was recorded
};

struct DiffTable {
  const FunctionDiff& diff;
  std::vector<FunctionChange> changes;  // the shown ones, sorted
  std::vector<DiffRun> before, after;
  bool full_names = false;                 // functions are shown by their whole names
  ReportClock clock = ReportClock::kWall;  // that of the functions' times
};

// Writes a line for each side and for the time of all its threads, and a row for each
// change within options.limit: self time before and after, difference, calls, and whether
// the difference is noise. With options.sort == kTotal it shows total instead of self.
void write_diff_text(const DiffTable& table, const ViewOptions& options,
                     const WriteText& write);

// Members "runs_a" and "runs_b", arrays of file, records, lost, duration_ns, wall_ns;
// "noise_known"; "clock", that of the functions' times ("wall", "cpu" or "off-cpu");
// "paired_programs", the file names before and after of programs that are
// compared as one, empty without; and "functions", an array of name, module, calls_a,
// calls_b, base_ns_a, base_ns_b, cum_ns_a, cum_ns_b, base_noise_ns and cum_noise_ns
// (null: not known).
void write_diff_json(const DiffTable& table, const ViewOptions& options,
                     JsonWriter& json);

}  // namespace arctrace::reader
