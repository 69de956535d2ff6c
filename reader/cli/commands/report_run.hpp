// One report, from the trace to its last line: what `report` and `graph` run.
#pragma once

#include <absl/status/statusor.h>

#include "reader/cli/options/report_options.hpp"

namespace arctrace::cli {

// Reads the trace and writes the view to standard output. Returns the exit status: 0, or
// 130 after Ctrl-C. REQUIRES: complete_report_options() found no error.
absl::StatusOr<int> run_report(const ReportOptions& options);

}  // namespace arctrace::cli
