// A report, from the file to the last line.
#pragma once

#include <absl/status/statusor.h>

#include "reader/cli/options/report_options.hpp"

namespace arctrace::cli {

// Returns the exit status: 0, or 130 if SIGINT ended the reading.
absl::StatusOr<int> run_report(const ReportOptions& options);

}  // namespace arctrace::cli
