// How the C interface replays a trace.
#pragma once

#include <arctrace/reader.h>

#include <optional>

#include "reader/replay/replay.hpp"
#include "reader/trace/trace.hpp"

namespace arctrace::reader {

// The filter of the caller's, which may be nullptr or of an earlier version; nullopt if
// its size makes no sense.
std::optional<ReplayFilter> read_filter(const arctrace_reader_filter* given);

// `trace` and `listener`, which may be nullptr, must outlive the replay.
ReplayOptions replay_options_for(const Trace& trace, const ReplayFilter& filter,
                                 ReplayListener* listener);

}  // namespace arctrace::reader
