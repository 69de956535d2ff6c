// One export, from the trace to the file: what `export` runs.
#pragma once

#include <absl/status/statusor.h>

#include "reader/cli/options/export_options.hpp"

namespace arctrace::cli {

// Reads the trace and writes it in the format that is asked for. Returns the exit status:
// 0, or 130 after Ctrl-C. REQUIRES: complete_export_options() found no error.
absl::StatusOr<int> run_export(const ExportOptions& options);

}  // namespace arctrace::cli
