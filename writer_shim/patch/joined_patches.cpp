// The shim's side of patching a program that runs. A function stays patched between
// recordings, with its gate as the last one left it, and is idle because functions are
// not recorded then. The next recording has it recorded again through the image of the
// earlier one.
#include <arctrace/format.h>

#include <cerrno>

#include "src/api/shim_interface.h"
#include "src/base/large_table.hpp"
#include "src/base/memory.hpp"
#include "src/base/text.hpp"
#include "writer_shim/filter/function_filter.hpp"
#include "writer_shim/patch/call_rates.hpp"
#include "writer_shim/patch/module_patcher.hpp"
#include "writer_shim/patch/patch_image_file.hpp"
#include "writer_shim/patch/patch_report.hpp"
#include "writer_shim/patch/patched_modules.hpp"
#include "writer_shim/plt/library_hooks.hpp"

extern "C" {
// The recorder finds the list by this name.
__attribute__((visibility("default")))
ARCTRACE_LARGE_TABLE arctrace::shim::WantedModules arctrace_wanted_modules;
}

namespace arctrace::shim {
namespace {

// The facts to be reported about a module.
struct Taken {
  uintptr_t module;  // its lowest address
  const PatchTable*
      table;       // a new image, whose jumps are not known to be written; or null
  uint32_t again;  // functions of earlier images
  uint64_t first;  // one of them
};
ARCTRACE_LARGE_TABLE constinit Taken taken[kPatchedModulesMax]{};
uint32_t taken_count;

void list_module(const PatchedModule& module) {
  WantedModules& list = arctrace_wanted_modules;
  if (list.count == kPatchedModulesMax) return;
  WantedModule& one = list.modules[list.count++];
  one = {module.image.bias, module.image.range.low, module.is_program ? 1U : 0U, {}};
  if (module.is_program) return;
  const char* name = file_name(module.path);
  copy_bytes(one.name, name, text_length(name, kModuleNameMax - 1));
}

// This is needed because the recorder of an earlier recording may have ended before it
// wrote the jumps.
void switch_off(const PatchedModule& module, const PatchTable& table) {
  drop_unwritten_patches(module, table, 0);
  switch_off_patches(table);
}

// The arguments with which patch_again() is called for each image.
struct Search {
  const PatchedModule* module;
  PatchAgain function;
  RecordedAgain result;
};
Search search;

void search_image(const PatchedModule& module, const PatchTable& table) {
  if (&module != search.module || search.result != RecordedAgain::kNotPatched) return;
  search.result = patch_again(module, table, search.function);
  if (search.result != RecordedAgain::kNotPatched) watch_call_rates(table);
}

// `functions`: `count` of them.
void record_again(const PatchedModule& module, const PatchAgain* functions,
                  uint64_t count, Taken& result) {
  for (uint64_t i = 0; i < count; ++i) {
    search = {&module, functions[i], RecordedAgain::kNotPatched};
    for_each_patch_image(search_image);
    if (search.result != RecordedAgain::kYes) continue;
    ++result.again;
    result.first = functions[i].function;
  }
}

}  // namespace

void switch_off_joined_patches() { for_each_patch_image(switch_off); }

void want_joined_patches(const ShimOptions& options, const char* options_entry) {
  arctrace_wanted_modules.count = 0;
  taken_count = 0;
  note_joined_modules(options, options_entry, list_module);
}

int take_joined_patches(const OfferedPatches& offered) {
  const PatchedModule* const module = find_joined_module(offered.low);
  if (module == nullptr) return ENOENT;
  const auto* const bytes = reinterpret_cast<const unsigned char*>(&offered + 1);
  const LoadedImage image = load_offered_image(bytes, offered.size, offered.is_last != 0);
  if (image.refusal == ARCTRACE_PATCH_NO_ROOM && offered.is_last == 0) return EAGAIN;
  arctrace_shim_patterns_matched(image.matched);
  if (image.refusal != 0) report_refused_module(*module, image.refusal);
  if (taken_count == kPatchedModulesMax) return 0;
  Taken& result = taken[taken_count++];
  result = {offered.low, image.table, 0, 0};
  const auto& file = *reinterpret_cast<const PatchTable*>(bytes + kPatchTableOffset);
  const auto* again = reinterpret_cast<const PatchAgain*>(
      bytes + kPatchTableOffset + sizeof(PatchTable) + file.skips_size);
  record_again(*module, again, file.again_count, result);
  if (image.table == nullptr) return 0;
  if (!note_patch_image(*module, *image.table)) {
    report_refused_module(*module, ARCTRACE_PATCH_UNREADABLE);
    result.table = nullptr;
    return 0;
  }
  prepare_patches(*module, *image.table);
  watch_call_rates(*image.table);
  note_patches(*module, *image.table);
  return 0;
}

void report_joined_patches() {
  for (uint32_t i = 0; i < taken_count; ++i) {
    const Taken& one = taken[i];
    const PatchedModule* const module = find_joined_module(one.module);
    if (module == nullptr) continue;
    const uint32_t written =
        one.table == nullptr
            ? 0
            : drop_unwritten_patches(*module, *one.table, ARCTRACE_PATCH_IN_USE);
    const uint64_t first = written != 0 ? first_patched(*one.table) : one.first;
    if (written + one.again != 0) report_patched(*module, written + one.again, first);
  }
  taken_count = 0;
}

}  // namespace arctrace::shim
