// The options of record, env and ctl that filter the functions and arguments to be
// recorded.
#pragma once

#include "reader/cli/options/cli11.hpp"
#include "src/recording/patterns/call_filter.hpp"

namespace arctrace::cli {

// --snapshot-when.
CLI::Option* add_snapshot_when_option(CLI::App& app,
                                      recording::CallFilterOptions& options);

// The others. What is wrong with their values recording::find_problem() says.
void add_call_filter_options(CLI::App& app, recording::CallFilterOptions& options);

}  // namespace arctrace::cli
