// The options of `arctrace report`.
#pragma once

#include <absl/status/status.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "reader/analysis/tree_groups.hpp"
#include "reader/cli/options/options.hpp"
#include "reader/cli/options/trace_options.hpp"
#include "reader/replay/call_tree.hpp"
#include "reader/report/view_types.hpp"

namespace arctrace::cli {

struct ReportOptions : ReplayFilterOptions {
  const char* command = "report";
  std::vector<std::string> paths;
  const reader::ViewType* view = &reader::view_types().front();
  OutputFormat format = OutputFormat::kText;
  std::optional<reader::Grouping> per;
  bool merge = false;
  reader::ReportClock clock = reader::ReportClock::kWall;
  std::optional<reader::SortKey> sort;
  std::optional<uint64_t> limit;
  reader::ViewOptions shown;
  std::vector<std::string> functions;  // globs of what the view is about
  std::vector<std::string> of;         // the same, as --of has them
  std::vector<std::string> where;
  TerminalOptions terminal;
  bool no_header = false;
  bool corrected = false;  // the cost of recording is subtracted from all times
  bool download = false;   // debug files

  // The grouping that is asked for, or that of the view.
  reader::Grouping grouping() const;
  // The option that needs the kernel's records, such as "--clock=cpu"; empty if none
  // does.
  std::string needs_kernel() const;
};

// Adds --clock.
void add_clock_option(CLI::App& app, reader::ReportClock& clock);

// Adds all options of `report` to `app`. `options` must outlive it.
void add_report_options(CLI::App& app, ReportOptions& options);

// Adds the options of `graph`: a function, and those of `report` that its view knows.
void add_graph_options(CLI::App& app, ReportOptions& options);

// Completes `options` after they are parsed. Error: they contradict each other.
absl::Status complete_report_options(ReportOptions& options);

}  // namespace arctrace::cli
