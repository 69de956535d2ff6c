// The output of `arctrace info` as JSON.
#pragma once

#include <optional>

#include "reader/render/json_writer.hpp"
#include "reader/trace/trace.hpp"

namespace arctrace::reader {

// One object: session, summary, processes (with modules), threads, buffer (of a raw one),
// findings. Times are ns since the session's start, or null. REQUIRES: trace.read() has
// been called.
void write_info_json(const Trace& trace, std::optional<double> records_per_second,
                     JsonWriter& json);

}  // namespace arctrace::reader
