// Hooks clone, which may make a task that shares the memory and the thread-local storage
// of its parent while both run.
#include "writer_shim/libc/clone_hooks.hpp"

#include <sched.h>
#include <stdarg.h>

#include "writer_shim/libc/hook.hpp"
#include "writer_shim/libc/vfork_hooks.hpp"

namespace arctrace::shim {
namespace {

using Clone = int(int (*function)(void*), void* stack, int flags, void* argument, ...);
constinit RealFunction<Clone> real_clone("clone");

bool shares_storage(int flags) {
  return (flags & CLONE_VM) != 0 && (flags & CLONE_SETTLS) == 0;
}

}  // namespace

void find_clone() { real_clone.get(); }

}  // namespace arctrace::shim

using namespace arctrace::shim;

// The child begins in `function` on a stack of its own: it does not return from here.
ARCTRACE_HOOK int clone(int (*function)(void*), void* stack, int flags, void* argument,
                        ...) noexcept {
  va_list list;
  va_start(list, argument);
  void* const parent_tid = va_arg(list, void*);
  void* const tls = va_arg(list, void*);
  void* const child_tid = va_arg(list, void*);
  va_end(list);
  const auto call = [&] {
    return real_clone.get()(function, stack, flags, argument, parent_tid, tls, child_tid);
  };
  if (!shares_storage(flags) || !has_session()) return call();
  if ((flags & CLONE_VFORK) == 0) {
    arctrace_shim_lends_storage();
    return call();
  }
  begin_vfork();
  const int pid = call();
  end_vfork(pid);
  return pid;
}

extern "C" __attribute__((visibility("default"), alias("clone"))) int __clone(
    int (*function)(void*), void* stack, int flags, void* argument, ...) noexcept;
