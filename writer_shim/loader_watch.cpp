// The loader calls us through a jump that is put into r_debug.r_brk, an empty function
// that it calls for debuggers. Where no jump can be made, its counters of modules are
// compared.
#include "writer_shim/loader_watch.hpp"

#include <elf.h>
#include <link.h>

#include "src/base/raw_syscall.hpp"
#include "writer_shim/arch/function_jump.hpp"
#include "writer_shim/arch/machine.hpp"
#include "writer_shim/filter/function_filter.hpp"
#include "writer_shim/functions/entry_hooks.hpp"
#include "writer_shim/functions/function_sleds.hpp"
#include "writer_shim/libc/hook.hpp"
#include "writer_shim/patch/patch_image_file.hpp"
#include "writer_shim/patch/patched_calls.hpp"
#include "writer_shim/patch/patched_modules.hpp"
#include "writer_shim/plt/library_hooks.hpp"
#include "writer_shim/unwind/frame_finder.hpp"

namespace arctrace::shim {
namespace {

const r_debug* loader;     // null: not watched
uint32_t counting_pid;     // the process that compares the counters
unsigned long long count;  // modules loaded and unloaded when last compared

// `are_unrelocated`: new modules are noticed as soon as they are mapped, so that they can
// be hooked in their initialization. Others may have read-only data already, and other
// threads may run their code: these are not hooked.
void modules_changed(bool are_unrelocated) {
  forget_frame_rules();
  forget_entry_hooks();
  if constexpr (machine::kPatchesFunctions) {
    forget_patched_callers();
    forget_unloaded_patches();
  }
  read_function_symbols();
  library_modules_changed(are_unrelocated);
  sled_modules_changed(are_unrelocated);
  arctrace_shim_modules_changed();
}

// The loader calls it in place of its own empty function, with its lock held; after a
// load, before the constructors of the new modules run.
void loader_calls() {
  if (loader->r_state != r_debug::RT_CONSISTENT) return;
  if constexpr (machine::kPatchesFunctions) {
    if (is_mapping_image()) return;  // it has nothing that is hooked
  }
  modules_changed(true);
}

// Finds the loader's record for debuggers through the program's dynamic section, because
// the symbol _r_debug may be a copy in the program.
int find_loader(dl_phdr_info* info, size_t, void* result) {
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    if (info->dlpi_phdr[i].p_type != PT_DYNAMIC) continue;
    const auto* entry =
        reinterpret_cast<const ElfW(Dyn)*>(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr);
    for (; entry->d_tag != DT_NULL; ++entry) {
      if (entry->d_tag == DT_DEBUG) {
        *static_cast<const r_debug**>(result) =
            reinterpret_cast<const r_debug*>(entry->d_un.d_ptr);
      }
    }
  }
  return 1;  // the program is the first module; the others don't matter
}

int read_count(dl_phdr_info* info, size_t, void* result) {
  *static_cast<unsigned long long*>(result) = info->dlpi_adds + info->dlpi_subs;
  return 1;
}

unsigned long long module_count() {
  unsigned long long result = 0;
  dl_iterate_phdr(read_count, &result);
  return result;
}

// Compares the counters.
void check_modules() {
  // Nothing is done in a fork child: another thread of its parent may have held the
  // loader's lock.
  if (counting_pid != sys::getpid()) return;
  const unsigned long long now = module_count();
  if (now == count) return;
  count = now;
  modules_changed(false);
}

}  // namespace

void look_for_modules() {
  count = module_count();
  modules_changed(false);
}

void watch_loader() {
  dl_iterate_phdr(find_loader, &loader);
  if (loader == nullptr || loader->r_brk == 0 ||
      !make_function_jump(loader->r_brk, reinterpret_cast<uintptr_t>(&loader_calls))) {
    counting_pid = sys::getpid();
    set_module_check(check_modules);
  }
  // Constructors that ran before ours may have loaded modules.
  look_for_modules();
}

}  // namespace arctrace::shim
