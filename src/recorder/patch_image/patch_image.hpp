// Makes the image that a process maps to have its program's functions recorded: an ELF
// image with a copy of the instructions that each jump covers, the code to which the jump
// leads, unwind rules for both, and the table by which the shim writes the jumps
// (src/shim_protocol/patching.hpp). It is a module of the process, so unwinders find its
// rules.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <vector>

#include "src/recorder/patch_analysis/module_code.hpp"
#include "src/recorder/patch_analysis/patch_plan.hpp"
#include "src/shim_protocol/patching.hpp"

namespace arctrace::recorder {

// Where memory is mapped in a process, from the text of its /proc/PID/maps.
class AddressSpace {
 public:
  // Lines that are not understood are skipped.
  explicit AddressSpace(std::string_view maps_untrusted);

  // A place for `size` bytes, whole pages, from which `module` is within reach of a jump,
  // and the reverse: below the module, or far above it, because the heap grows right
  // above it.
  std::optional<uint64_t> find_space_near(CodeRange module, uint64_t size) const;

 private:
  bool is_free(CodeRange range) const;

  std::vector<CodeRange> mapped_;  // by address
};

// Functions that are skipped, by enum arctrace_patch_verdict.
struct SkippedFunctions {
  uint64_t count = 0;
  std::vector<uint64_t> listed;  // the file addresses of some of them
};
using SkippedByVerdict = std::map<uint32_t, SkippedFunctions>;

struct PatchRequest {
  std::vector<const FunctionPlan*> functions;  // by address, each patchable
  std::set<const FunctionPlan*> named;  // of these, those that are asked for by name
  uint64_t bias = 0;                    // from file addresses to those of the process
  uint64_t matched = 0;                 // for the table
  SkippedByVerdict skipped;             // for the shim's report
  std::vector<shim::PatchAgain> again;  // of the process
};

// `code` and the plan of the functions are of one file. Functions whose unwind rules
// cannot be moved are skipped. If there is no space near the module, the image has no
// functions, and says so.
std::vector<std::byte> make_patch_image(const ModuleCode& code,
                                        const PatchRequest& request,
                                        const AddressSpace& process);

// An image that only says why there is none, and which functions are skipped.
std::vector<std::byte> refused_patch_image(uint32_t refusal, const PatchRequest& request);

}  // namespace arctrace::recorder
