#include "writer_shim/plt/stack_calls.hpp"

#include <ucontext.h>

#include "src/api/shim_interface.h"
#include "src/base/text.hpp"
#include "writer_shim/arch/machine.hpp"

namespace arctrace::shim {
namespace {

const ucontext_t& context_at(const uintptr_t* return_slot, size_t argument) {
  return *reinterpret_cast<const ucontext_t*>(
      machine::argument_of(return_slot, argument));
}

}  // namespace

void record_stack_call(const char* name, const uintptr_t* return_slot) {
  if (equal(name, "makecontext")) {
    const stack_t& stack = context_at(return_slot, 0).uc_stack;
    const auto low = reinterpret_cast<uintptr_t>(stack.ss_sp);
    return arctrace_shim_makes_stack(low, low + stack.ss_size);
  }
  if (equal(name, "make_fcontext")) {
    const uintptr_t high = machine::argument_of(return_slot, 0);
    const uintptr_t size = machine::argument_of(return_slot, 1);
    return arctrace_shim_makes_stack(size < high ? high - size : 0, high);
  }
  uintptr_t target = 0;
  if (equal(name, "swapcontext")) {
    target = machine::context_stack_pointer(context_at(return_slot, 1));
  } else if (equal(name, "setcontext")) {
    target = machine::context_stack_pointer(context_at(return_slot, 0));
  } else {
    // An fcontext_t is where the stack of what it stands for ends.
    target = machine::argument_of(return_slot, 0);
  }
  if (target != 0) arctrace_shim_switches_stack(target, 0);
}

}  // namespace arctrace::shim
