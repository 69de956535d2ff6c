#include "src/calls/slow_path_stack.hpp"

#include <signal.h>

#include "src/base/raw_syscall.hpp"
#include "src/os/kernel_use.hpp"
#include "src/writer/writer_call.hpp"

namespace arctrace::writer {
namespace {

StackRange signal_stack() {
  stack_t now{};
  if (raw_syscall(SYS_sigaltstack, 0, sys::pointer_argument(&now)) != 0 ||
      (now.ss_flags & SS_DISABLE) != 0) {
    return {};
  }
  const auto low = reinterpret_cast<uintptr_t>(now.ss_sp);
  return {low, low + now.ss_size};
}

}  // namespace

__attribute__((noinline)) void ask_for_signal_stack(ThreadLocal& local) {
  if (local.is_vforking || storage_is_shared() || !may_call_kernel()) return;
  // A handler may set another stack between the query and the stores; its hook has noted
  // that stack. Then the second answer differs.
  StackRange& known = local.stacks.signal;
  StackRange found = signal_stack();
  for (;;) {
    known = found;
    found = signal_stack();
    if (found.low == known.low && found.high == known.high) break;
  }
  local.stacks.is_signal_known = true;
}

}  // namespace arctrace::writer
