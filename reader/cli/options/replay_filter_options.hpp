// The options that say which calls, threads and times are shown: those that `report` and
// `export` have in common.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "reader/cli/options/cli11.hpp"
#include "reader/cli/options/options.hpp"
#include "reader/replay/filter.hpp"
#include "reader/trace/definitions.hpp"
#include "reader/trace/gaps.hpp"

namespace arctrace::cli {

struct ReplayFilterOptions {
  std::vector<uint32_t> pids, tids;
  std::vector<std::string> processes;  // globs
  reader::ReplayFilter filter;         // complete once `range` is taken over
  bool all_threads = false;            // with threads that only the kernel's records name
  TimeRange range;

  bool has_thread_filter() const {
    return !pids.empty() || !tids.empty() || !processes.empty();
  }
  bool wants_thread(const reader::Definitions& definitions,
                    reader::ThreadIndex thread) const;
  // Whether a gap is one of threads and times that are shown.
  bool wants_gap(const reader::Definitions& definitions, const reader::Gap& gap) const;
  // After the options are parsed.
  void take_range() {
    filter.from_ns = range.from_ns;
    filter.until_ns = range.until_ns;
  }
};

// Adds the options, in the group "Filters". `functions_help`: what -F does; empty: there
// is no such option. `options` must outlive `app`.
void add_replay_filter_options(CLI::App& app, ReplayFilterOptions& options,
                               const std::string& functions_help);

}  // namespace arctrace::cli
