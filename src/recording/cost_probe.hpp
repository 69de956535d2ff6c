// Measures what recording a call costs, by recording programs that make calls of each
// kind (src/cost_probe/).
#pragma once

#include <arctrace/format.h>

#include <optional>
#include <string>
#include <vector>

namespace arctrace::recording {

// One of each kind that can be measured on this machine, in about 0.1 s of CPU
// time. `shim_path`: the programs are beside it. nullopt: they are not there, or no
// buffer could be made, or none of them was recorded.
std::optional<std::vector<arctrace_hook_cost>> measure_hook_costs(
    const std::string& shim_path);

}  // namespace arctrace::recording
