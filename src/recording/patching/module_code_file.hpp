// Reads an ELF file for the analysis of its functions: its loaded segments, the names of
// its functions, and the pointers into its code.
#pragma once

#include <absl/status/statusor.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "src/recorder/patch_analysis/module_code.hpp"
#include "src/recorder/patch_analysis/patch_plan.hpp"

namespace arctrace::recording {

struct ModuleCodeFile {
  recorder::ModuleCode code;
  std::vector<std::byte> build_id;    // empty: it has none
  uint64_t stamp = 0;                 // as in PatchPlan
  std::vector<std::string> findings;  // the parts that could not be read
};

// `path` is an executable or shared object for x86-64. Names come from its symbols, its
// separate debug file, and its .gnu_debugdata. Error, in words for the user: there is no
// such file, or none that can be analysed. A file that is cut off is read as far as it
// goes, with a finding.
absl::StatusOr<ModuleCodeFile> read_module_code_untrusted(const std::string& path);

// As read_module_code_untrusted(), for an ELF file in memory, without separate files.
absl::StatusOr<ModuleCodeFile> module_code_of_bytes_untrusted(std::string bytes,
                                                              const std::string& name);

struct PlannedModule {
  recorder::ModuleCode code;
  recorder::PatchPlan plan;
};

// The module at `path`, and its plan: the cache's if it has one, else a new one, which is
// stored there. `use_cache` false: always a new one, which is not stored.
absl::StatusOr<PlannedModule> plan_module(const std::string& path, bool use_cache);

}  // namespace arctrace::recording
