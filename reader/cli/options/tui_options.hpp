// The options of `tui`.
#pragma once

#include <string>

#include "reader/cli/options/cli11.hpp"
#include "reader/cli/options/replay_filter_options.hpp"

namespace arctrace::cli {

struct TuiOptions : ReplayFilterOptions {
  std::vector<std::string> paths;
  bool partial = false;
  bool download = false;  // of debug files
};

// `options` must outlive `app`.
void add_tui_options(CLI::App& app, TuiOptions& options);

}  // namespace arctrace::cli
