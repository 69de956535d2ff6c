// Patches the modules of a program. Each module's image is made by a run of the command,
// mapped near the module, and stays mapped for good, because a thread may still be in it
// after the module is unloaded. A module that is loaded again at the same address has its
// image already.
#include "writer_shim/patch/patched_modules.hpp"

#include <arctrace/arctrace.h>
#include <arctrace/format.h>
#include <fcntl.h>
#include <link.h>
#include <sys/auxv.h>
#include <sys/prctl.h>
#include <sys/stat.h>

#include <string_view>

#include "src/api/shim_interface.h"
#include "src/base/large_table.hpp"
#include "src/base/memory.hpp"
#include "src/base/raw_syscall.hpp"
#include "src/base/text.hpp"
#include "src/shim_protocol/patching.hpp"
#include "writer_shim/arch/code_changes.hpp"
#include "writer_shim/arch/patched_calls.h"
#include "writer_shim/elf/elf_sections.hpp"
#include "writer_shim/elf/loaded_objects.hpp"
#include "writer_shim/elf/module_slots.hpp"
#include "writer_shim/elf/symbol_search.hpp"
#include "writer_shim/filter/function_filter.hpp"
#include "writer_shim/filter/function_patterns.hpp"
#include "writer_shim/patch/call_rates.hpp"
#include "writer_shim/patch/module_patcher.hpp"
#include "writer_shim/patch/patch_image_file.hpp"
#include "writer_shim/patch/patch_report.hpp"
#include "writer_shim/plt/library_hooks.hpp"
#include "writer_shim/plt/own_work.hpp"

namespace arctrace::shim {
namespace {

// A module that was checked.
struct Known {
  PatchedModule module;
  const PatchTable* table = nullptr;  // null: none of its functions can be patched
  bool is_loaded = false;
  bool is_seen = false;  // in the loader's list at the last check
  bool is_new = false;
  uint32_t chosen = 0;  // functions
};

ARCTRACE_LARGE_TABLE constinit Known known[kPatchedModulesMax]{};
uint32_t known_count;

// An image that is mapped. A module that was patched while the program ran, or that was
// loaded again, may have several.
struct Image {
  const PatchTable* table;
  uint32_t of;  // the index in `known`
};
ARCTRACE_LARGE_TABLE constinit Image images[kPatchedModulesMax]{};
uint32_t image_count;

const ShimOptions* wanted;  // null: no functions are patched
ARCTRACE_LARGE_TABLE char program_path[1024];

std::string_view view_of(const char* text) { return {text, text_length(text, SIZE_MAX)}; }

bool is_wanted(const PatchedModule& module) {
  const std::string_view name =
      module.is_program ? std::string_view() : view_of(file_name(module.path));
  for (size_t i = 0; i < wanted->pattern_count; ++i) {
    const Pattern& pattern = wanted->patterns[i];
    if (pattern.kind == Pattern::Kind::kPatch &&
        is_for_module(split_patch_pattern(view_of(pattern.text)), name)) {
      return true;
    }
  }
  return false;
}

// Whether the module is skipped: it is one of ours, or one without which no code can be
// loaded.
bool is_skipped(const ModuleImage& image) {
  static const uintptr_t loader = getauxval(AT_BASE);
  static const uintptr_t vdso = getauxval(AT_SYSINFO_EHDR);
  return is_own_module(image) || image.range.contains(loader) ||
         image.range.contains(vdso) || is_patch_code(image.range.low);
}

bool is_same(const PatchedModule& a, const PatchedModule& b) {
  return a.image.bias == b.image.bias && a.image.range.low == b.image.range.low &&
         a.image.range.high == b.image.range.high && a.file == b.file;
}

void note_module(const PatchedModule& module) {
  for (uint32_t i = 0; i < known_count; ++i) {
    if (!is_same(known[i].module, module)) continue;
    known[i].is_new = !known[i].is_loaded;
    known[i].is_loaded = true;
    known[i].module = module;  // the old path was the loader's
    return;
  }
  if (known_count == kPatchedModulesMax) {
    return report_refused_module(module, ARCTRACE_PATCH_NO_STUB);
  }
  known[known_count++] = {module, nullptr, true, true, true, 0};
}

int visit_module(dl_phdr_info* info, size_t, void* is_first) {
  PatchedModule module;
  module.is_program = *static_cast<bool*>(is_first);
  *static_cast<bool*>(is_first) = false;
  module.path = info->dlpi_name;
  if (!is_wanted(module)) return 0;
  if (!read_module(*info, module.image)) module.image = {};
  if (module.image.range.high == 0 ? !module.is_program : is_skipped(module.image))
    return 0;
  const ModuleFile file(*info, module.is_program);
  struct stat status {};
  if (file.descriptor() >= 0 && sys::stat_fd(file.descriptor(), &status) == 0) {
    module.file = {status.st_dev, status.st_ino, 0};
  }
  if (module.is_program) {
    copy_bytes(program_path, file.path(),
               text_length(file.path(), sizeof program_path - 1));
    module.path = program_path;
  }
  note_module(module);
  return 0;
}

bool has_other_threads() {
  struct stat status {};
  constexpr uint64_t kLinksOfOneThread = 3;
  return raw_syscall(SYS_newfstatat, AT_FDCWD, sys::pointer_argument("/proc/self/task"),
                     sys::pointer_argument(&status), 0) != 0 ||
         status.st_nlink != kLinksOfOneThread;
}

bool has_seccomp_filter() { return raw_syscall(SYS_prctl, PR_GET_SECCOMP) != 0; }

// Why the module's functions cannot be patched; 0: they can.
uint32_t why_refused(const PatchedModule& module) {
  if (module.image.range.high == 0) return ARCTRACE_PATCH_UNREADABLE;
  if (has_seccomp_filter()) return ARCTRACE_PATCH_CONFINED;
  return calls_compiled_in_hooks(module.image) ? ARCTRACE_PATCH_HOOKS : 0;
}

uint32_t why_refused(const PatchedModule& module, bool may_run_already) {
  const uint32_t why = why_refused(module);
  if (why != 0) return why;
  return may_run_already && has_other_threads() ? ARCTRACE_PATCH_THREADS : 0;
}

// The module's image; null: there is none, which was reported.
const PatchTable* load_image(const PatchedModule& module, bool may_run_already) {
  if (const uint32_t why = why_refused(module, may_run_already); why != 0) {
    report_refused_module(module, why);
    return nullptr;
  }
  const LoadedImage image = load_patch_image(module, wanted->patcher);
  arctrace_shim_patterns_matched(image.matched);
  if (image.refusal != 0) report_refused_module(module, image.refusal);
  const PatchTable* table = image.table;
  if (table == nullptr) return nullptr;
  if (!note_patch_image(module, *table)) {
    report_refused_module(module, ARCTRACE_PATCH_UNREADABLE);
    return nullptr;
  }
  return table;
}

template <class Act>
void for_each_new(const Act& act) {
  for (uint32_t i = 0; i < known_count; ++i) {
    if (known[i].is_new) act(known[i]);
  }
}

void note_callers(const PatchTable& table) {
  arctrace_patched_code = table.code_low;
  arctrace_patched_code_size = table.code_high - table.code_low;
}

// Prepares what a module's functions need when they are called.
void prepare_calls(const PatchedModule& module, const PatchTable& table) {
  if (module.is_program) note_callers(table);
  find_loaded_object(table.code_low);  // the first one takes the loader's lock
  find_demangler();
}

// Steps that need libc are done for all modules, before the first function of any is
// patched, because that may be libc's.
void patch_those_found(bool may_run_already) {
  bool has_new = false;
  for_each_new([&](const Known&) { has_new = true; });
  if (!has_new) return;
  // The shim's start by the loader is told as a whole (arctrace_shim_started()).
  const bool is_told = may_run_already && !is_late();
  const OwnWork patching(!is_told);
  for_each_new([&](Known& one) {
    if (one.table == nullptr) one.table = load_image(one.module, may_run_already);
  });
  for_each_new([](Known& one) {
    if (one.table == nullptr) return;
    one.chosen = prepare_patches(one.module, *one.table);
  });
  for_each_new([](Known& one) {
    one.is_new = false;
    if (one.table == nullptr) return;
    watch_call_rates(*one.table);
    write_patches(one.module, *one.table, one.chosen);
  });
}

int find_own_code(dl_phdr_info* info, size_t, void*) {
  ModuleImage image;
  if (!read_module(*info, image) ||
      !image.range.contains(reinterpret_cast<uintptr_t>(&known))) {
    return 0;
  }
  know_own_code(image.range);
  return 1;
}

void find_modules() {
  bool is_first = true;
  dl_iterate_phdr(visit_module, &is_first);
}

// Takes the options. False: they ask for no functions.
bool take_options(const ShimOptions& options, const char* options_entry) {
  wanted = options.patcher == nullptr ? nullptr : &options;
  if (wanted == nullptr) return false;
  keep_patcher_environment(options_entry);
  dl_iterate_phdr(find_own_code, nullptr);
  return true;
}

int see_module(dl_phdr_info* info, size_t, void*) {
  ModuleImage image;
  if (!read_module(*info, image)) return 0;
  for (uint32_t i = 0; i < known_count; ++i) {
    const ModuleImage& other = known[i].module.image;
    if (known[i].is_loaded && image.bias == other.bias &&
        image.range.low == other.range.low && image.range.high == other.range.high) {
      known[i].is_seen = true;
    }
  }
  return 0;
}

}  // namespace

bool note_patch_image(const PatchedModule& module, const PatchTable& table) {
  const AddressRange& range = module.image.range;
  uint32_t of = 0;
  while (of < known_count && !is_same(known[of].module, module)) ++of;
  if (of == known_count || image_count == kPatchedModulesMax ||
      !range.contains(table.code_low) || table.code_high < table.code_low ||
      table.code_high > range.high || !note_patch_code({table.low, table.high})) {
    return false;
  }
  images[image_count++] = {&table, of};
  prepare_calls(module, table);
  return true;
}

void patch_modules(const ShimOptions& options, const char* options_entry) {
  if (!take_options(options, options_entry)) return;
  find_modules();
  patch_those_found(true);
}

void note_joined_modules(const ShimOptions& options, const char* options_entry,
                         void (*visit)(const PatchedModule&)) {
  if (!take_options(options, options_entry)) return;
  find_modules();
  for (uint32_t i = 0; i < known_count; ++i) {
    known[i].is_new = false;
    const PatchedModule& module = known[i].module;
    if (!known[i].is_loaded || !is_wanted(module)) continue;
    const uint32_t why = why_refused(module);
    if (why != 0) {
      report_refused_module(module, why);
    } else {
      visit(module);
    }
  }
}

const PatchedModule* find_joined_module(uintptr_t low) {
  for (uint32_t i = 0; i < known_count; ++i) {
    if (known[i].is_loaded && known[i].module.image.range.low == low) {
      return &known[i].module;
    }
  }
  return nullptr;
}

void for_each_patch_image(void (*visit)(const PatchedModule&, const PatchTable&)) {
  for (uint32_t i = 0; i < image_count; ++i) {
    const Known& one = known[images[i].of];
    if (one.is_loaded) visit(one.module, *images[i].table);
  }
}

void patch_new_modules() {
  if (wanted == nullptr) return;
  find_modules();
  patch_those_found(false);
}

void forget_unloaded_patches() {
  if (known_count == 0) return;
  for (uint32_t i = 0; i < known_count; ++i) known[i].is_seen = false;
  dl_iterate_phdr(see_module, nullptr);
  for (uint32_t i = 0; i < known_count; ++i) {
    if (!known[i].is_loaded || known[i].is_seen) continue;
    known[i].is_loaded = false;
    for (uint32_t k = 0; k < image_count; ++k) {
      if (images[k].of == i) stop_watching(*images[k].table);
    }
  }
}

}  // namespace arctrace::shim
