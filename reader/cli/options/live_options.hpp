// What `arctrace live` is asked to show.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "reader/cli/options/dump_filter.hpp"
#include "reader/cli/options/options.hpp"
#include "src/recording/options.hpp"

namespace arctrace::cli {

struct LiveOptions {
  std::vector<std::string> target;  // a session; or "" and a command
  bool plain = false;
  OutputFormat format = OutputFormat::kText;
  DumpFilter filter;                 // of lines
  std::vector<std::string> where;    // the same
  std::vector<uint32_t> pids, tids;  // the filter's; without a target, pids are joined
  recording::RecordOptions record;   // of a command, or of processes that are joined
};

}  // namespace arctrace::cli
