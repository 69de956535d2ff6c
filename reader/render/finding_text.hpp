// How a finding is shown.
#pragma once

#include <string>

#include "reader/trace/record.hpp"
#include "reader/trace/trace.hpp"

namespace arctrace::cli {

// "R3 chunk 12, byte 144: TEXT: it is too short (a record is long enough for ...)";
// one line, escaped.
std::string finding_text(const reader::Finding& finding, const reader::Session& session);

}  // namespace arctrace::cli
