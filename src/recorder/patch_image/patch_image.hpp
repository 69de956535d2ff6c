// Makes what a process maps to have its program's functions recorded: an ELF image with a
// copy of the instructions that each jump covers, the code to which the jump leads,
// unwind rules for both, and the table by which the shim writes the jumps
// (src/shim_protocol/patch_table.hpp). As a module of the process it is found by whatever
// unwinds stacks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <vector>

#include "src/recorder/patch_analysis/module_code.hpp"
#include "src/recorder/patch_analysis/patch_plan.hpp"
#include "src/recorder/patch_image/address_space.hpp"
#include "src/shim_protocol/patch_table.hpp"

namespace arctrace {

// Functions that are left alone, by enum arctrace_patch_verdict.
struct LeftFunctions {
  uint64_t count = 0;
  std::vector<uint64_t> listed;  // the file addresses of some of them
};
using LeftByVerdict = std::map<uint32_t, LeftFunctions>;

struct PatchRequest {
  std::vector<const FunctionPlan*> functions;  // by address, each patchable
  std::set<const FunctionPlan*> named;  // of these, those that are asked for by name
  uint64_t bias = 0;                    // from file addresses to those of the process
  uint64_t matched = 0;                 // for the table
  LeftByVerdict left;                   // for the shim's report
  std::vector<shim::PatchAgain> again;  // of the process
};

// `code` and the plan of the functions are of one file. Functions whose unwind rules
// cannot be moved are left out. An image without functions, if there is no room, says so.
std::vector<std::byte> make_patch_image(const ModuleCode& code,
                                        const PatchRequest& request,
                                        const AddressSpace& process);

// An image that only says why there is none, and which functions are left.
std::vector<std::byte> refused_patch_image(uint32_t refusal, const PatchRequest& request);

}  // namespace arctrace
