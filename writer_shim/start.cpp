// The shim's start in a process: a constructor that joins the session, decodes the
// options and installs all hooks, before the program's own constructors run; and the
// watch over the loader, which keeps the hooks up to date.
#include <elf.h>
#include <errno.h>
#include <link.h>
#include <stdlib.h>

#include <type_traits>

#include "src/base/large_table.hpp"
#include "src/base/memory.hpp"
#include "src/base/raw_syscall.hpp"
#include "src/shim_protocol/joining.hpp"
#include "src/shim_protocol/options.hpp"
#include "writer_shim/arch/code_changes.hpp"
#include "writer_shim/arch/machine.hpp"
#include "writer_shim/arch/sled_jumps.hpp"
#include "writer_shim/base/early_join.hpp"
#include "writer_shim/base/glibc.hpp"
#include "writer_shim/base/mappings.hpp"
#include "writer_shim/base/stack_space.hpp"
#include "writer_shim/elf/symbol_search.hpp"
#include "writer_shim/filter/function_filter.hpp"
#include "writer_shim/filter/function_patterns.hpp"
#include "writer_shim/filter/live_filter.hpp"
#include "writer_shim/functions/function_hooks.hpp"
#include "writer_shim/libc/hook.hpp"
#include "writer_shim/libc/session_environment.hpp"
#include "writer_shim/patch/patch_image_file.hpp"
#include "writer_shim/patch/patched_modules.hpp"
#include "writer_shim/plt/library_hooks.hpp"
#include "writer_shim/unwind/frame_finder.hpp"

namespace arctrace::shim {
namespace {

// The functions below notice modules that are loaded and unloaded while the program runs,
// and have the hooks brought up to date. dlopen and dlclose themselves cannot be hooked,
// because they search by their caller.

// The loader calls the shim through a jump that is written into r_debug.r_brk, an empty
// function that it calls for debuggers. If no jump can be made, the loader's counters of
// modules are compared.

const r_debug* loader;     // null: not watched
uint32_t counting_pid;     // the process that compares the counters
unsigned long long count;  // modules loaded and unloaded at the last comparison

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

// The loader calls this in place of its own empty function, with its lock held; after a
// load, before the constructors of the new modules run.
void loader_calls() {
  if (loader->r_state != r_debug::RT_CONSISTENT) return;
  if constexpr (machine::kPatchesFunctions) {
    if (is_mapping_image()) return;  // an image has nothing that is hooked
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

// Brings the hooks up to date with the modules that are loaded now; new ones are not
// hooked. To be called under the loader's lock.
void update_modules() {
  count = module_count();
  modules_changed(false);
}

// Begins to watch the loader. To be called once, after all hooks are installed, under the
// loader's lock.
void watch_loader() {
  dl_iterate_phdr(find_loader, &loader);
  if (loader == nullptr || loader->r_brk == 0 ||
      !make_function_jump(loader->r_brk, reinterpret_cast<uintptr_t>(&loader_calls))) {
    counting_pid = sys::getpid();
    set_module_check(check_modules);
  }
  // Constructors that ran before the shim's may have loaded modules.
  update_modules();
}

// Marks the main thread's start. Another thread may load a late shim: it is recorded
// without the bounds of its stack, which libc would tell only with malloc and a lock.
void start_main_thread() {
  if (sys::gettid() != sys::getpid()) return;
  const arctrace_shim_memory stack = main_thread_stack();
  arctrace_shim_thread_start(stack.low, stack.high);
}

// Whether no other thread runs code that is to be changed. A late shim asks libc, which
// knows that since glibc 2.32.
bool is_alone() {
  if (!is_late()) return true;
  const uintptr_t word = find_function("__libc_single_threaded", SearchFrom::kProgram);
  return word != 0 && *reinterpret_cast<const volatile char*>(word) != 0;
}

// Who had the hooks installed.
enum class StartedBy : uint8_t { kNobody, kLoader, kRecorder };
StartedBy started_by = StartedBy::kNobody;

void set_filter(const ShimOptions& options) {
  set_patterns(options);
  if (options.records_args()) find_demangler();
  set_arg_options(options);
  bool filter_in_only = false;
  for (size_t i = 0; i < options.pattern_count; ++i) {
    filter_in_only = filter_in_only || options.patterns[i].kind == Pattern::Kind::kFilter;
  }
  start_live_filter(filter_in_only);
  if (started_by == StartedBy::kRecorder) know_functions_that_may_be_open();
  read_function_symbols();
  arctrace_shim_set_name_flags(options.filters() ? named_frame_flags : nullptr);
  if (!options.filters()) return;
  const arctrace_shim_filter filter = {filter_in_only ? 1U : 0U, options.depth_max,
                                       options.min_ns};
  arctrace_shim_set_filter(&filter);
  static_assert(kCallFilterTextMax == ARCTRACE_SHIM_FILTER_TEXT_MAX);
  FilterText text;
  write_filter_text(options, text);
  arctrace_shim_set_filter_text(text.bytes, text.size);
}

ARCTRACE_LARGE_TABLE constinit ShimOptions options{};
bool were_options_read;

// The options have space for all that can be asked for, 64 pages, of which a program that
// begins touches only those that it needs.
void read_options(const char* text) {
  static_assert(std::is_trivially_copyable_v<ShimOptions>);
  if (were_options_read) fill_zero(&options, sizeof options);  // as newly constructed
  were_options_read = true;
  decode_options(text, options);
}

// The recorder makes the images for patches of a program that runs.
void want_patches() {
  if constexpr (machine::kPatchesFunctions) {
    want_joined_patches(options, remembered_options());
  }
}

void modules_are_initialized() {
  patch_functions();
  if constexpr (machine::kPatchesFunctions) patch_new_modules();
}

// The caller holds the loader's lock. If the recorder has this called, changes of the
// code of modules that are there are only noted, because the program's threads may be
// anywhere in it.
void start_hooks(const char* options_text, StartedBy by) {
  started_by = by;
  read_options(options_text);
  set_filter(options);
  arctrace_shim_set_unwinder(find_caller);
  start_function_hooks();
  if constexpr (machine::kHasExitHooks) start_exit_hooked_calls();
  find_exec_functions();
  find_spawn_functions();
  find_clone();
  find_mlockall();
  find_prctl_functions();
  prepare_thread_hooks();
  prepare_fork_hooks();
  prepare_thread_end_hooks();
  remember_environment(options_text, by == StartedBy::kRecorder);
  start_main_thread();
  if (by == StartedBy::kRecorder || is_late()) expect_signal_stacks();
  if (by == StartedBy::kRecorder) find_open_functions(open_function_flags);
  if (by == StartedBy::kRecorder) watch_older_threads();
  hook_library_calls(options.library_calls);
  if (by == StartedBy::kRecorder) {
    note_function_changes();
  } else if (is_alone()) {
    patch_functions();
    if constexpr (machine::kPatchesFunctions)
      patch_modules(options, remembered_options());
  }
  set_module_hook(modules_are_initialized);
  watch_loader();
  if (by == StartedBy::kRecorder) want_patches();
  watch_exit();
}

// Has all hooks apply the options of another session, before anything is recorded.
// Returns whether there is a filter of calls.
bool renew_hooks() {
  forget_function_symbols();
  set_filter(options);
  update_modules();
  find_open_functions(open_function_flags);
  renew_library_hooks(options.library_calls);
  note_function_changes();
  if constexpr (machine::kPatchesFunctions) switch_off_joined_patches();
  return options.filters();
}

// The session that is to be joined: the path of its buffer, or null, and then a
// descriptor of it.
struct WantedSession {
  const char* path;
  int descriptor;
};

int join_again(const WantedSession& session, const char* options_text) {
  if (has_session()) return EALREADY;
  read_options(options_text);
  remember_environment(options_text, true);
  const int result = session.path != nullptr
                         ? arctrace_shim_join(session.path, renew_hooks)
                         : arctrace_shim_join_handed(session.descriptor, renew_hooks);
  if (result != 0) return -result;
  lead_jumps_to_gate();
  want_patches();
  return 0;
}

// Hooks that the loader had installed belong to one session for good: some are code that
// reads its gate.
bool may_join() {
  return started_by == StartedBy::kNobody ? is_late()
                                          : started_by == StartedBy::kRecorder;
}

__attribute__((constructor(102))) void start() {
  if (!is_glibc()) return;
  arctrace_shim_start_begins();
  find_exit_functions();
  join_early();
  // A shim of another installation may be loaded too: a recording inside a recording.
  if (!has_session() || arctrace_shim_claim() == 0) return;
  if (!is_known_glibc()) {
    arctrace_shim_leave(ARCTRACE_UNTRACED_LIBC);
    return;
  }
  start_hooks(secure_getenv(kOptionsVariable), StartedBy::kLoader);
  if (!is_late()) arctrace_shim_started();
}

// The step that the recorder wants to be done under the loader's lock; null: none.
// Returns 0 or an error number.
int (*wanted_step)();

// The session that is to be joined, and the options.
WantedSession wanted_session;
const char* wanted_options;

// The image that is handed over.
const OfferedPatches* offered_patches;

// Joins the session, and hooks all that can be hooked while other threads run. Returns 0
// or an error number: ENOSYS for a glibc that is too old, EPERM for a program that began
// with a shim, others are arctrace_attach()'s. After EALREADY, the functions below may
// have the process leave the session that it is in.
int join_wanted_session() {
  if (!is_glibc() || !is_known_glibc()) return ENOSYS;
  if (!may_join()) return EPERM;
  if (started_by == StartedBy::kRecorder) {
    return join_again(wanted_session, wanted_options);
  }
  const int result = wanted_session.path != nullptr
                         ? arctrace_attach(wanted_session.path)
                         : arctrace_shim_join_handed(wanted_session.descriptor, nullptr);
  if (result < 0) return -result;
  if (arctrace_shim_claim() == 0) return EPERM;
  start_hooks(wanted_options, StartedBy::kRecorder);
  return 0;
}

int take_offered_patches() {
  if constexpr (machine::kPatchesFunctions) {
    return take_joined_patches(*offered_patches);
  } else {
    return ENOSYS;
  }
}

int report_patches() {
  if constexpr (machine::kPatchesFunctions) report_joined_patches();
  return 0;
}

}  // namespace
}  // namespace arctrace::shim

using namespace arctrace;  // the C functions below are the namespace's face
using namespace arctrace::shim;

// The functions below are called by the recorder, in a thread of a program that runs and
// has loaded the shim (src/recorder/attach/join_process.cpp). They return kJoinResult
// plus 0 or an error number.

// Notes the session that is to be joined, by its path, and the options in the form of
// their variable. Both must stay in memory until that is done.
ARCTRACE_HOOK int arctrace_want_session(const char* session, const char* options_text) {
  wanted_session = {session, -1};
  wanted_options = options_text;
  wanted_step = join_wanted_session;
  return kJoinResult;
}

// The same for a session of which the process was handed a descriptor.
ARCTRACE_HOOK int arctrace_want_handed_session(uint64_t descriptor,
                                               const char* options_text) {
  wanted_session = {nullptr, static_cast<int>(descriptor)};
  wanted_options = options_text;
  wanted_step = join_wanted_session;
  return kJoinResult;
}

// Notes an image that is to be taken; it stays until that is done.
ARCTRACE_HOOK int arctrace_offer_patches(const OfferedPatches* offered) {
  offered_patches = offered;
  wanted_step = take_offered_patches;
  return kJoinResult;
}

// Has the patched functions reported, after the changes were made or skipped.
ARCTRACE_HOOK int arctrace_want_report() {
  wanted_step = report_patches;
  return kJoinResult;
}

// The steps of leaving a session that is over (src/api/shim_interface.h).
ARCTRACE_HOOK int arctrace_end_session() {
  return kJoinResult - arctrace_shim_end_session();
}
ARCTRACE_HOOK int arctrace_forget_session() {
  return kJoinResult - arctrace_shim_forget_session();
}

// To be called when the noted changes were made, or skipped.
ARCTRACE_HOOK int arctrace_code_is_changed() {
  free_noted_changes();
  forget_entry_hooks();
  return kJoinResult;
}

extern "C" {
// dlsym() calls this when it is asked for the function below, under the loader's lock: no
// module is half loaded then, and none is loaded meanwhile. The result is dlsym()'s
// result.
using WantedFunction = void();
__attribute__((visibility("hidden"), used)) WantedFunction*
arctrace_resolve_wanted_step() {
  const int error = wanted_step == nullptr ? EINVAL : wanted_step();
  wanted_step = nullptr;
  return reinterpret_cast<WantedFunction*>(uintptr_t{kJoinResult} +
                                           static_cast<uintptr_t>(error));
}
__attribute__((visibility("default"), ifunc("arctrace_resolve_wanted_step"))) void
arctrace_wanted_step();
}
