// The options of the commands that replay a trace: those that say which calls, threads
// and times are shown, which `report` has too, and those of `export`, `tui` and `view`.
#pragma once

#include <absl/status/status.h>

#include <cstdint>
#include <string>
#include <vector>

#include "reader/cli/options/options.hpp"
#include "reader/export/export_formats.hpp"
#include "reader/replay/functions.hpp"
#include "reader/trace/definitions.hpp"
#include "reader/trace/gaps.hpp"

namespace arctrace::cli {

// The options that say which calls, threads and times are shown: those that `report` and
// `export` have in common.
struct ReplayFilterOptions {
  std::vector<uint32_t> pids, tids;
  std::vector<std::string> processes;  // globs
  reader::ReplayFilter filter;         // complete once `range` is taken over
  bool all_threads = false;            // with threads that only the kernel's records name
  bool full_names = false;             // of functions; of reports the terminal's options
  TimeRange range;

  bool has_thread_filter() const {
    return !pids.empty() || !tids.empty() || !processes.empty();
  }
  bool wants_thread(const reader::Definitions& definitions,
                    reader::ThreadIndex thread) const;
  // Whether a gap concerns threads and times that are shown.
  bool wants_gap(const reader::Definitions& definitions, const reader::Gap& gap) const;
  // To be called after the options are parsed.
  void take_range() {
    filter.from_ns = range.from_ns;
    filter.until_ns = range.until_ns;
  }
};

// Adds the options, in the group "Filters". `functions_help`: what -F does; empty: there
// is no such option. `options` must outlive `app`.
void add_replay_filter_options(CLI::App& app, ReplayFilterOptions& options,
                               const std::string& functions_help);

// Adds --full-names. `full_names` must outlive `app`.
void add_full_names_option(CLI::App& app, bool& full_names);

// The options of `arctrace export`.
struct ExportOptions : ReplayFilterOptions {
  const reader::ExportFormat* format = nullptr;
  std::vector<std::string> paths;
  std::string output;
  bool force = false;     // OUT may exist
  bool partial = false;   // a trace that is not whole will do
  bool download = false;  // debug files
  reader::ExportWeight weight = reader::ExportWeight::kWall;
  std::optional<reader::Grouping> grouping;
  std::vector<TimeRange> exact;  // of which all calls are exported
  std::vector<std::string> where;
  bool has_sum_options = false;  // one of those that only formats of sums know

  bool to_stdout() const { return output == "-"; }
};

// Adds all options of `export` to `app`. `options` must outlive it.
void add_export_options(CLI::App& app, ExportOptions& options);

// Completes `options` after they are parsed. Error: they contradict each other.
absl::Status complete_export_options(ExportOptions& options);

// The options of `tui`.
struct TuiOptions : ReplayFilterOptions {
  std::vector<std::string> paths;
  bool partial = false;
  bool download = false;  // of debug files
};

// `options` must outlive `app`.
void add_tui_options(CLI::App& app, TuiOptions& options);

// The options of `view`.
struct ViewPageOptions {
  std::vector<std::string> paths;
  uint16_t port = 0;  // 0: any
  bool no_open = false;
  bool partial = false;
  bool download = false;    // of debug files
  bool full_names = false;  // of functions
};

// `options` must outlive `app`.
void add_view_options(CLI::App& app, ViewPageOptions& options);

}  // namespace arctrace::cli
