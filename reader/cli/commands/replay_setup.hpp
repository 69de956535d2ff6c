// How a trace is replayed by the options that `report` and `export` have in common.
#pragma once

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

}  // namespace arctrace::cli
