// Looks up the rule for a machine frame in the unwind tables of its module: the binary
// search table of .eh_frame_hdr, and from there the entries of .eh_frame.
#pragma once

#include <cstddef>
#include <cstdint>

#include "writer_shim/unwind/frame_rule.hpp"

namespace arctrace::shim {

// The rule that holds at `pc`, an address in a loaded module. Lock-free, some hundred ns;
// reads only what the loader has mapped.
FrameRule find_frame_rule(uintptr_t pc);

// The same from one module's .eh_frame_hdr, which is mapped within [low, high) like the
// .eh_frame that it points to. Reads nothing outside of that range.
FrameRule find_frame_rule_in(const std::byte* eh_frame_hdr, uintptr_t low, uintptr_t high,
                             uintptr_t pc);

}  // namespace arctrace::shim
