// Makes what a process maps to have its program's functions recorded: an ELF image with a
// copy of the instructions that each jump covers, the code to which the jump leads,
// unwind rules for both, and the table by which the shim writes the jumps
// (src/shim_protocol/patch_table.hpp). As a module of the process it is found by whatever
// unwinds stacks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "src/recorder/patch_analysis/module_code.hpp"
#include "src/recorder/patch_analysis/patch_plan.hpp"
#include "src/recorder/patch_image/address_space.hpp"
#include "src/shim_protocol/patch_table.hpp"

namespace arctrace {

struct PatchRequest {
  std::vector<const FunctionPlan*> functions;  // by address, each patchable
  uint64_t bias = 0;     // from file addresses to those of the process
  uint64_t matched = 0;  // for the table
};

// `code` and the plan of the functions are of one file. Functions whose unwind rules
// cannot be moved are left out. An image without functions, if there is no room, says so.
std::vector<std::byte> make_patch_image(const ModuleCode& code,
                                        const PatchRequest& request,
                                        const AddressSpace& process);

// An image that only says why there is none.
std::vector<std::byte> refused_patch_image(shim::PatchRefusal refusal,
                                           std::string_view refused_for,
                                           uint64_t matched);

}  // namespace arctrace
