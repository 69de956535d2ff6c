// The shim's start in a process: a constructor that joins the session, decodes the
// options and puts all hooks in their places, before the program's own constructors run.
#include <errno.h>
#include <stdlib.h>

#include <type_traits>

#include "src/base/memory.hpp"
#include "src/shim_protocol/environment.hpp"
#include "src/shim_protocol/join_result.hpp"
#include "src/shim_protocol/options.hpp"
#include "writer_shim/arch/code_changes.hpp"
#include "writer_shim/arch/machine.hpp"
#include "writer_shim/base/early_join.hpp"
#include "writer_shim/base/glibc.hpp"
#include "writer_shim/base/main_stack.hpp"
#include "writer_shim/base/room.hpp"
#include "writer_shim/elf/symbol_search.hpp"
#include "writer_shim/filter/arg_specs.hpp"
#include "writer_shim/filter/filter_text.hpp"
#include "writer_shim/filter/function_filter.hpp"
#include "writer_shim/filter/function_patterns.hpp"
#include "writer_shim/filter/live_filter.hpp"
#include "writer_shim/functions/entry_hooks.hpp"
#include "writer_shim/functions/function_hooks.hpp"
#include "writer_shim/functions/function_sleds.hpp"
#include "writer_shim/functions/reported_calls.hpp"
#include "writer_shim/libc/clone_hooks.hpp"
#include "writer_shim/libc/end_hooks.hpp"
#include "writer_shim/libc/exec_hooks.hpp"
#include "writer_shim/libc/fork_hooks.hpp"
#include "writer_shim/libc/hook.hpp"
#include "writer_shim/libc/mlock_hooks.hpp"
#include "writer_shim/libc/prctl_hooks.hpp"
#include "writer_shim/libc/session_environment.hpp"
#include "writer_shim/libc/spawn_hooks.hpp"
#include "writer_shim/libc/thread_end_hooks.hpp"
#include "writer_shim/libc/thread_hooks.hpp"
#include "writer_shim/loader_watch.hpp"
#include "writer_shim/patch/joined_patches.hpp"
#include "writer_shim/patch/patched_modules.hpp"
#include "writer_shim/plt/library_hooks.hpp"
#include "writer_shim/unwind/frame_finder.hpp"
#include "writer_shim/unwind/open_functions.hpp"

namespace arctrace::shim {
namespace {

// Another thread may load a late shim. It is recorded without the bounds of its stack,
// which libc would tell only with malloc and a lock.
void start_main_thread() {
  if (sys::gettid() != sys::getpid()) return;
  const arctrace_shim_memory stack = main_thread_stack();
  arctrace_shim_thread_start(stack.low, stack.high);
}

// Whether no other thread runs code that is to be changed. A late shim knows from libc,
// which says so since glibc 2.32.
bool is_alone() {
  if (!is_late()) return true;
  const uintptr_t word = find_function("__libc_single_threaded", SearchFrom::kProgram);
  return word != 0 && *reinterpret_cast<const volatile char*>(word) != 0;
}

// Who had the hooks put into their places.
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

constinit ShimOptions options{};

void read_options(const char* text) {
  static_assert(std::is_trivially_copyable_v<ShimOptions>);
  fill_zero(&options, sizeof options);  // as newly constructed
  decode_options(text, options);
}

// The recorder makes what patches of a program that runs need.
void want_patches() {
  if constexpr (machine::kPatchesFunctions) {
    want_joined_patches(options, remembered_options());
  }
}

void modules_are_initialized() {
  patch_functions();
  if constexpr (machine::kPatchesFunctions) patch_new_modules();
}

// Called under the loader's lock. When the recorder has it called, changes of the code of
// modules that are there are only noted: the program's threads may stand anywhere in it.
void start_hooks(const char* options_text, StartedBy by) {
  started_by = by;
  read_options(options_text);
  set_filter(options);
  arctrace_shim_set_unwinder(find_caller);
  start_function_hooks();
  if constexpr (machine::kHasReportedExits) start_reported_calls();
  find_exec_functions();
  find_spawn_functions();
  find_clone();
  find_mlockall();
  find_prctl_functions();
  prepare_thread_hooks();
  prepare_fork_hooks();
  prepare_thread_end_hooks();
  remember_environment(options_text);
  start_main_thread();
  if (by == StartedBy::kRecorder || is_late()) expect_signal_stacks();
  if (by == StartedBy::kRecorder) find_open_functions(open_function_flags);
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

// Has all hooks follow the options of another session, before anything is recorded.
// Returns whether there is a filter of calls.
bool renew_hooks() {
  forget_function_symbols();
  set_filter(options);
  look_for_modules();
  find_open_functions(open_function_flags);
  renew_library_hooks(options.library_calls);
  note_function_changes();
  if constexpr (machine::kPatchesFunctions) switch_off_joined_patches();
  return options.filters();
}

int join_again(const char* session, const char* options_text) {
  if (has_session()) return EALREADY;
  read_options(options_text);
  remember_environment(options_text);
  const int result = arctrace_shim_join(session, renew_hooks);
  if (result != 0) return -result;
  lead_jumps_to_gate();
  want_patches();
  return 0;
}

// Hooks that the loader had put into their places belong to one session for good: some
// are code that reads its gate.
bool may_join() {
  return started_by == StartedBy::kNobody ? is_late()
                                          : started_by == StartedBy::kRecorder;
}

__attribute__((constructor(102))) void start() {
  if (!is_glibc()) return;
  find_exit_functions();
  join_early();
  // A shim of another installation may be loaded too: a recording inside a recording.
  if (!has_session() || arctrace_shim_claim() == 0) return;
  if (!is_known_glibc()) {
    arctrace_shim_leave(ARCTRACE_UNTRACED_LIBC);
    return;
  }
  start_hooks(secure_getenv(kOptionsVariable), StartedBy::kLoader);
}

// What the recorder wants to be done under the loader's lock; null: nothing. Returns 0 or
// an error number.
int (*wanted_step)();

// The session that is to be joined, and the options.
const char* wanted_session;
const char* wanted_options;

// The image that is handed over.
const OfferedPatches* offered_patches;

// Joins it, and hooks what can be hooked while other threads run. Returns 0 or an error
// number: ENOSYS is a glibc that is too old, EPERM a program that began with a shim,
// others are arctrace_attach()'s. After EALREADY, the functions below may have the
// process leave the session that it is in.
int join_wanted_session() {
  if (!is_glibc() || !is_known_glibc()) return ENOSYS;
  if (!may_join()) return EPERM;
  if (started_by == StartedBy::kRecorder) {
    return join_again(wanted_session, wanted_options);
  }
  const int result = arctrace_attach(wanted_session);
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
  wanted_session = session;
  wanted_options = options_text;
  wanted_step = join_wanted_session;
  return kJoinResult;
}

// Notes an image that is to be taken, which stays until that is done.
ARCTRACE_HOOK int arctrace_offer_patches(const OfferedPatches* offered) {
  offered_patches = offered;
  wanted_step = take_offered_patches;
  return kJoinResult;
}

// Notes that what was patched is to be reported, after the changes were made or left.
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

// The changes that were noted are made, or were left.
ARCTRACE_HOOK int arctrace_code_is_changed() {
  free_noted_changes();
  forget_entry_hooks();
  return kJoinResult;
}

extern "C" {
// dlsym() calls it, when it is asked for the function below, under the loader's lock: no
// module is half loaded then, and none is loaded meanwhile. What it returns is dlsym()'s
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
