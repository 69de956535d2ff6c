// arctrace info for people.
#pragma once

#include <optional>
#include <string>

#include "reader/trace/trace.hpp"

namespace arctrace::cli {

// REQUIRES: trace.read() has been called.
std::string info_text(const reader::Trace& trace,
                      std::optional<double> records_per_second = std::nullopt);

}  // namespace arctrace::cli
