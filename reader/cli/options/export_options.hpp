// The options of `arctrace export`.
#pragma once

#include <absl/status/status.h>

#include <string>
#include <vector>

#include "reader/cli/options/cli11.hpp"
#include "reader/cli/options/replay_filter_options.hpp"
#include "reader/export/export_formats.hpp"

namespace arctrace::cli {

struct ExportOptions : ReplayFilterOptions {
  const reader::ExportFormat* format = nullptr;
  std::vector<std::string> paths;
  std::string output;
  bool force = false;     // OUT may exist
  bool partial = false;   // a trace that is not whole will do
  bool download = false;  // debug files
  reader::ExportWeight weight = reader::ExportWeight::kWall;
  reader::Grouping grouping = reader::Grouping::kThread;
  std::vector<TimeRange> exact;  // of which all calls are exported
  std::vector<std::string> where;
  bool has_sum_options = false;  // one of those that only formats of sums know

  bool to_stdout() const { return output == "-"; }
};

// Adds all options of `export` to `app`. `options` must outlive it.
void add_export_options(CLI::App& app, ExportOptions& options);

// Completes `options` after they are parsed. Error: they contradict each other.
absl::Status complete_export_options(ExportOptions& options);

}  // namespace arctrace::cli
