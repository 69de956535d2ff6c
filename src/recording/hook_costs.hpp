// What recording a call costs on this machine.
#pragma once

#include <arctrace/format.h>

#include <vector>

#include "reader/trace/session.hpp"
#include "src/recorder/buffer/buffer.hpp"

namespace arctrace::recording {

// One of each kind that is known. Measured once for each boot of the machine and each
// build of arctrace, and kept in the user's cache directory, in hook-costs, which has the
// figures of the last eight builds that were measured. Empty: it could not be measured,
// or could not be kept there.
std::vector<arctrace_hook_cost> hook_costs();

// Those of calls in the session of this buffer, or copy of one. Empty also if it is of
// another machine or boot. They are not measured while writers could overwrite the
// records that are about to be read.
std::vector<arctrace_hook_cost> hook_costs_of(const Buffer& buffer);

// The same for a buffer that is read as a trace; never measured.
std::vector<arctrace_hook_cost> hook_costs_of(const reader::Session& session);

}  // namespace arctrace::recording
