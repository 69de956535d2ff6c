// The options of `view`.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "reader/cli/options/cli11.hpp"

namespace arctrace::cli {

struct ViewPageOptions {
  std::vector<std::string> paths;
  uint16_t port = 0;  // 0: any
  bool no_open = false;
  bool partial = false;
  bool download = false;  // of debug files
};

// `options` must outlive `app`.
void add_view_options(CLI::App& app, ViewPageOptions& options);

}  // namespace arctrace::cli
