// Patches the functions of one module: a jump takes the place of their first
// instructions, a copy of which runs after their entry was recorded. The command has
// found out which functions can be patched, and made the copies
// (src/shim_protocol/patching.hpp).
#pragma once

#include <cstdint>

#include "src/shim_protocol/options.hpp"
#include "src/shim_protocol/patching.hpp"
#include "writer_shim/elf/module_slots.hpp"

namespace arctrace::shim {

// A module that is loaded.
struct PatchedModule {
  ModuleImage image;
  FileAddress file{};          // address 0 of it
  const char* path = nullptr;  // it stays while the module is loaded
  bool is_program = false;
};

// Reports that no function of the module was patched, and why: enum
// arctrace_patch_verdict.
void report_refused_module(const PatchedModule& module, uint32_t verdict);

// Chooses the functions of `table` whose instructions are as in the module's file and
// that are not filtered out, and makes their calls ready. Reports the others. `table`:
// that of an image that was made for the module at its address. It may have been used for
// a module that was there before. Returns how many are chosen.
uint32_t prepare_patches(const PatchedModule& module, const PatchTable& table);

// As prepare_patches(), for a program that runs: notes the jumps (arch/code_changes.hpp).
// False: there is no memory for some of them.
bool note_patches(const PatchedModule& module, const PatchTable& table);

// Reports those of the functions that prepare_patches() has chosen at whose entries no
// jump was written, unless `verdict` is 0, and forgets them. Returns how many others
// there are. To be called under the loader's lock.
uint32_t drop_unwritten_patches(const PatchedModule& module, const PatchTable& table,
                                uint32_t verdict);

// Switches all functions of an image off.
void switch_off_patches(const PatchTable& table);

// If the function was patched by this image, has it recorded again, by the filters that
// apply now, unless it is filtered out.
enum class RecordedAgain : uint8_t { kNotPatched, kFilteredOut, kYes };
RecordedAgain patch_again(const PatchedModule& module, const PatchTable& table,
                          const PatchAgain& again);

// The first function that is patched by the image, which has one.
uint64_t first_patched(const PatchTable& table);

// Reports functions that are patched, of which `first` is one.
void report_patched(const PatchedModule& module, uint32_t count, uint64_t first);

// Writes the jumps over the functions that prepare_patches() has chosen, `count`. From
// then on their calls are recorded. REQUIRES: no thread runs code of the module.
void write_patches(const PatchedModule& module, const PatchTable& table, uint32_t count);

}  // namespace arctrace::shim
