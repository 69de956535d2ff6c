// Decides for each function of an x86-64 module whether its entry can be patched with a
// jump: the rules, one by one.
#pragma once

#include "src/recorder/patch_analysis/module_code.hpp"
#include "src/recorder/patch_analysis/patch_plan.hpp"

namespace arctrace {

// The plan of a module, without its build-id and stamp. Costs some 60 ns for each
// instruction of the module.
PatchPlan analyse_patches_untrusted(const ModuleCode& module);

}  // namespace arctrace
