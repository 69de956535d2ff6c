// Options that say which events, and which processes' and threads' records, are recorded.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "reader/cli/options/cli11.hpp"

namespace arctrace::cli {

struct RecordFilterOptions {
  std::vector<std::string> events, not_events;      // globs
  std::optional<uint32_t> level;                    // events up to this one
  std::vector<std::string> instants, not_instants;  // globs, of counters too
  std::vector<std::string> where;                   // conditions on fields of events
  std::vector<uint32_t> pids, tids;

  bool empty() const;
  // The text for the control page (SPEC.md FLT-2).
  std::string text() const;
};

// Returns the options, which `filter` must outlive. Processes and threads have numbers
// only while they run, so `with_threads` is for a session that exists.
std::vector<CLI::Option*> add_record_filter_options(CLI::App& app,
                                                    RecordFilterOptions& filter,
                                                    bool with_threads);

}  // namespace arctrace::cli
