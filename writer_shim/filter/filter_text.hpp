// The filter of calls as a text, as the trace has it (SPEC.md REC-13).
#pragma once

#include <cstdint>

#include "src/protocol/call_filter_text.hpp"
#include "src/shim_protocol/options.hpp"

namespace arctrace::shim {

struct FilterText {
  char bytes[kCallFilterTextMax];
  uint32_t size = 0;
};

// Sets `text`, which is new, to the filter of these options: empty if no call is filtered
// out. Uses neither libc nor memory.
void write_filter_text(const ShimOptions& options, FilterText& text);

}  // namespace arctrace::shim
