#include "writer_shim/start.hpp"

#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include "src/base/raw_syscall.hpp"
#include "src/shim_protocol/options.hpp"
#include "writer_shim/base/glibc.hpp"
#include "writer_shim/base/hook.hpp"
#include "writer_shim/filter/arg_specs.hpp"
#include "writer_shim/filter/function_filter.hpp"
#include "writer_shim/filter/function_patterns.hpp"
#include "writer_shim/filter/live_filter.hpp"
#include "writer_shim/functions/function_hooks.hpp"
#include "writer_shim/functions/function_sleds.hpp"
#include "writer_shim/libc/end_hooks.hpp"
#include "writer_shim/libc/exec_hooks.hpp"
#include "writer_shim/libc/prctl_hooks.hpp"
#include "writer_shim/libc/session_environment.hpp"
#include "writer_shim/libc/spawn_hooks.hpp"
#include "writer_shim/libc/thread_hooks.hpp"
#include "writer_shim/loader_watch.hpp"
#include "writer_shim/plt/library_hooks.hpp"
#include "writer_shim/unwind/frame_finder.hpp"

namespace arctrace::shim {
namespace {

// Below the main thread's stack the kernel keeps at least this much free of mappings,
// whatever its limit is; more than the upper bound is not worth telling from other
// stacks.
constexpr uintptr_t kStackGapMin = uintptr_t{128} << 20;
constexpr uintptr_t kStackMax = uintptr_t{64} << 30;

void start_main_thread() {
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

void set_choice(const ShimOptions& options) {
  choose_functions(options);
  if (options.have_values()) {
    find_demangler();
    choose_values(options);
  }
  bool only_chosen = false;
  for (size_t i = 0; i < options.pattern_count; ++i) {
    only_chosen = only_chosen || options.patterns[i].kind == Pattern::Kind::kChosen;
  }
  start_live_choice(only_chosen);
  if (options.live) keep_functions_for_live_choice();
  read_function_choice();
  if (!options.have_filter()) return;
  const arctrace_shim_filter filter = {only_chosen ? 1U : 0U, options.depth_max,
                                       options.min_ns};
  arctrace_shim_set_filter(&filter);
}

__attribute__((constructor(102))) void start() {
  if (!is_glibc()) return;
  join_early();
  // A shim of another installation may be loaded too: a recording inside a recording.
  if (!has_session() || arctrace_shim_claim() == 0) return;
  static constinit ShimOptions options;
  parse_options(secure_getenv("ARCTRACE_OPTIONS"), options);
  set_choice(options);
  arctrace_shim_set_unwinder(find_caller);
  find_next_function_hooks();
  find_exec_functions();
  find_spawn_functions();
  find_prctl_functions();
  prepare_thread_hooks();
  remember_environment();
  start_main_thread();
  hook_library_calls(options.library_calls);
  patch_functions();
  watch_loader();
  watch_exit();
}

}  // namespace

void join_early() {
  static uint32_t tried;
  // Null until libc has started; malloc, for one, is called by the loader before that.
  if (IpcAtomics::load_relaxed(tried) != 0 || environ == nullptr) return;
  IpcAtomics::store_relaxed(tried, uint32_t{1});
  arctrace_attach(nullptr);
}

}  // namespace arctrace::shim
