// Options that say which events, and which processes' and threads' records, are recorded.
#pragma once

#include <vector>

#include "reader/cli/options/cli11.hpp"
#include "src/recording/patterns/record_filter.hpp"

namespace arctrace::cli {

// Returns the options, which `filter` must outlive. Processes and threads have numbers
// only while they run, so `with_threads` is for a session that exists.
std::vector<CLI::Option*> add_record_filter_options(
    CLI::App& app, recording::RecordFilterOptions& filter, bool with_threads);

}  // namespace arctrace::cli
