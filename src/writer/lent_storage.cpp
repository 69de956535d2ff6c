#include "src/writer/lent_storage.hpp"

#include "src/os/kernel_use.hpp"
#include "src/os/thread_id.hpp"
#include "src/process/process_identity.hpp"

namespace arctrace {
namespace {

constexpr uintptr_t kLentGuard = 1;  // no stack pointer

void lend(ThreadLocal& local, uint32_t owner) {
  if (local.owner == 0) local.own_guard = 0;
  local.owner = owner;
  local.guard = kLentGuard;
}

}  // namespace

void lend_storage() {
  ThreadLocal& local = thread_local_state;
  // In a signal handler that interrupts a writer call the guard is that call's.
  if (!may_call_kernel() || local.owner != 0 || local.guard != 0) return;
  lend(local, thread_id());
}

bool is_borrower() {
  ThreadLocal& local = thread_local_state;
  if (is_new_process()) {
    local.owner = 0;
    local.guard = local.own_guard;
    return false;
  }
  return may_call_kernel() && thread_id() != local.owner;
}

bool look_for_borrower(uintptr_t stack_pointer) {
  // A stack is hardly smaller, and one that lies across the border costs two questions.
  constexpr uintptr_t kWindow = uintptr_t{1} << 14;
  ThreadLocal& local = thread_local_state;
  const uintptr_t window = stack_pointer & ~(kWindow - 1);
  if (local.owner != 0 || local.is_vforking || window == local.window_of_thread ||
      local.stacks.own.contains(stack_pointer) || local.state == nullptr ||
      !local.state->attached || !may_call_kernel() || is_new_process()) {
    return false;
  }
  if (thread_id() == local.state->slot.tid) {
    local.window_of_thread = window;
    return false;
  }
  lend(local, local.state->slot.tid);
  return true;
}

}  // namespace arctrace
