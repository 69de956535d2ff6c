// arctrace info for people.
#pragma once

#include <string>

#include "reader/trace/trace.hpp"

namespace arctrace::cli {

// REQUIRES: trace.read() has been called.
std::string info_text(const reader::Trace& trace);

}  // namespace arctrace::cli
