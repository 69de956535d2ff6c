// arctrace info for programs.
#pragma once

#include <optional>
#include <string>

#include "reader/trace/trace.hpp"

namespace arctrace::cli {

// One object: session, summary, processes (with modules), threads, buffer (of a raw one),
// findings. Times are ns since the session's start, or null. Ends with a newline.
// REQUIRES: trace.read() has been called.
std::string info_json(const reader::Trace& trace,
                      std::optional<double> records_per_second = std::nullopt);

}  // namespace arctrace::cli
