// How a trace is replayed by the options that `report` and `export` have in common.
#pragma once

#include <absl/status/status.h>

#include <string>

#include "reader/cli/options/replay_filter_options.hpp"
#include "reader/replay/replay.hpp"
#include "reader/symbols/symbolizer.hpp"
#include "reader/trace/trace.hpp"

namespace arctrace::cli {

// `allow_download`: of debug files.
reader::SymbolOptions symbol_options(bool allow_download);

// Without listeners. Both must outlive the replay.
reader::ReplayOptions replay_options(const ReplayFilterOptions& options,
                                     const reader::Trace& trace);

// The share of the trace that so many records are, nearly; it may come out above 1.
double share_read(const reader::Trace& trace, uint64_t records);

// An error for a buffer, and for a file that was cut off, unless `partial` asks for what
// it has. `does` is what a command does to a trace, such as "exports".
absl::Status check_whole(const reader::Session& session, const std::string& path,
                         bool partial, const char* does);

}  // namespace arctrace::cli
