// The shim's start in a process: a constructor that joins the session, decodes the
// options and puts all hooks in their places, before the program's own constructors run.
#include <errno.h>
#include <stdlib.h>
#include <sys/resource.h>

#include <type_traits>

#include "src/base/memory.hpp"
#include "src/base/raw_syscall.hpp"
#include "src/shim_protocol/environment.hpp"
#include "src/shim_protocol/join_result.hpp"
#include "src/shim_protocol/options.hpp"
#include "writer_shim/arch/machine.hpp"
#include "writer_shim/base/early_join.hpp"
#include "writer_shim/base/glibc.hpp"
#include "writer_shim/elf/symbol_search.hpp"
#include "writer_shim/filter/arg_specs.hpp"
#include "writer_shim/filter/function_filter.hpp"
#include "writer_shim/filter/function_patterns.hpp"
#include "writer_shim/filter/live_filter.hpp"
#include "writer_shim/functions/function_hooks.hpp"
#include "writer_shim/functions/function_sleds.hpp"
#include "writer_shim/functions/reported_calls.hpp"
#include "writer_shim/libc/clone_hooks.hpp"
#include "writer_shim/libc/end_hooks.hpp"
#include "writer_shim/libc/exec_hooks.hpp"
#include "writer_shim/libc/hook.hpp"
#include "writer_shim/libc/mlock_hooks.hpp"
#include "writer_shim/libc/prctl_hooks.hpp"
#include "writer_shim/libc/session_environment.hpp"
#include "writer_shim/libc/spawn_hooks.hpp"
#include "writer_shim/libc/thread_end_hooks.hpp"
#include "writer_shim/libc/thread_hooks.hpp"
#include "writer_shim/loader_watch.hpp"
#include "writer_shim/patch/patched_program.hpp"
#include "writer_shim/plt/library_hooks.hpp"
#include "writer_shim/unwind/frame_finder.hpp"

namespace arctrace::shim {
namespace {

// The kernel keeps at least this much below the main thread's stack free of mappings,
// whatever its limit is. The stack need not be told from others beyond the upper bound.
constexpr uintptr_t kStackGapMin = uintptr_t{128} << 20;
constexpr uintptr_t kStackMax = uintptr_t{64} << 30;

// Another thread may load a late shim. It is recorded without the bounds of its stack,
// which libc would tell only with malloc and a lock.
void start_main_thread() {
  if (sys::gettid() != sys::getpid()) return;
  const auto high = reinterpret_cast<uintptr_t>(__libc_stack_end);
  rlimit64 limit{};
  if (raw_syscall(SYS_prlimit64, 0, RLIMIT_STACK, 0, sys::pointer_argument(&limit)) !=
      0) {
    limit.rlim_cur = 0;
  }
  uintptr_t size = limit.rlim_cur;
  if (size < kStackGapMin) size = kStackGapMin;
  if (size > kStackMax) size = kStackMax;
  arctrace_shim_thread_start(high - size, high);
}

// Whether no other thread runs code that is to be changed. A late shim knows from libc,
// which says so since glibc 2.32.
bool is_alone() {
  if (!is_late()) return true;
  const uintptr_t word = find_function("__libc_single_threaded", SearchFrom::kProgram);
  return word != 0 && *reinterpret_cast<const volatile char*>(word) != 0;
}

void set_filter(const ShimOptions& options) {
  set_patterns(options);
  if (options.records_args()) find_demangler();
  set_arg_options(options);
  bool filter_in_only = false;
  for (size_t i = 0; i < options.pattern_count; ++i) {
    filter_in_only = filter_in_only || options.patterns[i].kind == Pattern::Kind::kFilter;
  }
  start_live_filter(filter_in_only);
  if (options.live) keep_names_for_live_filter();
  read_function_symbols();
  if (!options.filters()) return;
  const arctrace_shim_filter filter = {filter_in_only ? 1U : 0U, options.depth_max,
                                       options.min_ns};
  arctrace_shim_set_filter(&filter);
}

constinit ShimOptions options{};

// Who had the hooks put into their places.
enum class StartedBy : uint8_t { kNobody, kLoader, kRecorder };
StartedBy started_by = StartedBy::kNobody;

void read_options(const char* text) {
  static_assert(std::is_trivially_copyable_v<ShimOptions>);
  fill_zero(&options, sizeof options);  // as newly constructed
  decode_options(text, options);
}

// Called under the loader's lock. When the recorder has it called, the code of modules
// that are there is not changed: the program's threads may stand anywhere in it.
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
  prepare_thread_end_hooks();
  remember_environment(options_text);
  start_main_thread();
  hook_library_calls(options.library_calls);
  if (by == StartedBy::kLoader && is_alone()) {
    patch_functions();
    if constexpr (machine::kPatchesFunctions) patch_program(options);
  }
  set_module_hook(patch_functions);
  watch_loader();
  watch_exit();
}

// Has all hooks follow the options of another session, before anything is recorded.
// Returns whether there is a filter of calls.
bool renew_hooks() {
  forget_function_symbols();
  set_filter(options);
  look_for_modules();
  renew_library_hooks(options.library_calls);
  return options.filters();
}

int join_again(const char* session, const char* options_text) {
  if (has_session()) return EALREADY;
  read_options(options_text);
  remember_environment(options_text);
  return -arctrace_shim_join(session, renew_hooks);
}

// Hooks that the loader had put into their places belong to one session for good: some
// are code that reads its gate.
bool may_join() {
  return started_by == StartedBy::kNobody ? is_late()
                                          : started_by == StartedBy::kRecorder;
}

__attribute__((constructor(102))) void start() {
  if (!is_glibc()) return;
  join_early();
  // A shim of another installation may be loaded too: a recording inside a recording.
  if (!has_session() || arctrace_shim_claim() == 0) return;
  if (!is_known_glibc()) {
    arctrace_shim_leave(ARCTRACE_UNTRACED_LIBC);
    return;
  }
  start_hooks(secure_getenv(kOptionsVariable), StartedBy::kLoader);
}

// The session that the recorder wants to be joined, and the options; null: none.
const char* wanted_session;
const char* wanted_options;

// Joins it, and hooks what can be hooked while other threads run. Returns 0 or an error
// number: ENOSYS is a glibc that is too old, EPERM a program that began with a shim,
// others are arctrace_attach()'s. After EALREADY, the functions below may have the
// process leave the session that it is in.
int join_wanted_session() {
  if (wanted_session == nullptr) return EINVAL;
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
  return kJoinResult;
}

// The steps of leaving a session that is over (src/api/shim_interface.h).
ARCTRACE_HOOK int arctrace_end_session() {
  return kJoinResult - arctrace_shim_end_session();
}
ARCTRACE_HOOK int arctrace_forget_session() {
  return kJoinResult - arctrace_shim_forget_session();
}

extern "C" {
// dlsym() calls it, when it is asked for the function below, under the loader's lock: no
// module is half loaded then, and none is loaded meanwhile. What it returns is dlsym()'s
// result.
using JoinedFunction = void();
__attribute__((visibility("hidden"), used)) JoinedFunction*
arctrace_resolve_joined_session() {
  const int error = join_wanted_session();
  wanted_session = nullptr;
  return reinterpret_cast<JoinedFunction*>(uintptr_t{kJoinResult} +
                                           static_cast<uintptr_t>(error));
}
__attribute__((visibility("default"), ifunc("arctrace_resolve_joined_session"))) void
arctrace_joined_session();
}
