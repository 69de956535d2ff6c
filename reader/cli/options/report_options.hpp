// What a report is asked for.
#pragma once

#include <absl/status/status.h>

#include <CLI/CLI.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "reader/analysis/tree_groups.hpp"
#include "reader/cli/options/options.hpp"
#include "reader/render/view_options.hpp"
#include "reader/replay/cpu_time.hpp"
#include "reader/replay/filter.hpp"
#include "reader/trace/definitions.hpp"

namespace arctrace::cli {

enum class View : uint8_t {
  kTree,
  kFlat,
  kArcs,
  kKinds,
  kFlow,
  kInvocations,
  kLogRt,
  kThreads,
  kWakers
};
enum class When : uint8_t { kAuto, kAlways, kNever };

struct ReportOptions {
  std::string path;
  View view = View::kTree;
  Format format = Format::kText;
  std::optional<reader::Grouping> per;
  bool merge = false;
  std::vector<uint32_t> pids, tids;
  std::vector<std::string> processes;  // globs
  reader::ReplayFilter filter;
  reader::ReportClock clock = reader::ReportClock::kWall;
  bool all_threads = false;  // those too that only the kernel's records name
  TimeRange range;
  std::optional<reader::SortKey> sort;
  reader::ViewOptions shown;
  When color = When::kAuto;
  bool full_names = false;
  bool no_header = false;
  bool download = false;  // debug files

  // The view's own, unless something else is asked for.
  reader::Grouping grouping() const;
  bool has_groups() const {
    return view != View::kFlow && view != View::kInvocations && !is_of_schedule();
  }
  bool is_of_schedule() const { return view == View::kThreads || view == View::kWakers; }
  // What is asked for that needs the kernel's records, or nullptr.
  const char* needs_kernel() const;
  bool wants_thread(const reader::Definitions& definitions,
                    reader::ThreadIndex thread) const;
};

// Adds all options to `app`. `options` must outlive it.
void add_report_options(CLI::App& app, ReportOptions& options);

// After parsing: completes `options`. Error: they do not go together.
absl::Status complete_report_options(ReportOptions& options);

}  // namespace arctrace::cli
