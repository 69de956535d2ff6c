// The cost of recording a call on this machine. It is measured by recording programs that
// make calls of each kind (src/cost_probe/).
#pragma once

#include <arctrace/format.h>

#include <optional>
#include <string>
#include <vector>

#include "reader/trace/session.hpp"
#include "src/recorder/buffer/buffer.hpp"

namespace arctrace::recording {

// Measures the cost of each kind that can be measured on this machine, in about 0.1 s of
// CPU time. `shim_path`: the programs are beside it. nullopt: they are not there, or no
// buffer could be made, or none of them was recorded.
std::optional<std::vector<arctrace_hook_cost>> measure_hook_costs(
    const std::string& shim_path);

// The cost of each kind that is known. It is measured once for each boot of the machine
// and each build of arctrace, and stored in the user's cache directory, in hook-costs,
// which has the figures of the last eight builds that were measured. Empty: it could not
// be measured, or could not be stored there.
std::vector<arctrace_hook_cost> hook_costs();

// The costs of calls in the session of this buffer, or copy of one. Empty also if it is
// of another machine or boot. They are not measured while writers could overwrite the
// records that are about to be read.
std::vector<arctrace_hook_cost> hook_costs_of(const recorder::Buffer& buffer);

// The costs for a buffer that is read as a trace; never measured.
std::vector<arctrace_hook_cost> hook_costs_of(const reader::Session& session);

}  // namespace arctrace::recording
