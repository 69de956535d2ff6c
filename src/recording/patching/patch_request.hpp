// Which functions of a module are patched, and which are left and why.
#pragma once

#include <cstdint>
#include <string>

#include "src/recorder/patch_image/patch_image.hpp"
#include "src/recording/patching/module_code_file.hpp"
#include "src/shim_protocol/options.hpp"

namespace arctrace::recording {

// `planned`: the module of the file at `path`, which must stay. `library`: its name as
// patterns ask for it; empty: it is the program. `bias`: from its addresses to those of
// the process.
PatchRequest patch_request(const shim::ShimOptions& options, const PlannedModule& planned,
                           const std::string& path, const std::string& library,
                           uint64_t bias);

}  // namespace arctrace::recording
