// The slow path of the hooks of -finstrument-functions.
#include "writer_shim/functions/function_hooks.hpp"

#include <unistd.h>

#include <utility>

#include "writer_shim/arch/function_hooks.h"
#include "writer_shim/arch/machine.hpp"
#include "writer_shim/base/glibc.hpp"
#include "writer_shim/base/stack_space.hpp"
#include "writer_shim/elf/symbol_search.hpp"
#include "writer_shim/filter/function_filter.hpp"
#include "writer_shim/functions/functions_gate.hpp"
#include "writer_shim/plt/call_table.hpp"
#include "writer_shim/plt/library_hooks.hpp"
#include "writer_shim/unwind/frame_finder.hpp"

namespace arctrace::shim {
namespace {

using FunctionHook = void(void* function, void* call_site);

FunctionHook* next_enter;  // null: there are only libc's hooks, which do nothing
FunctionHook* next_exit;

void enter(uintptr_t function, arctrace_shim_call call) {
  locate_frame(function, call);
  if (returns_to_stub(call.call_site)) call.flags |= ARCTRACE_SHIM_RETURNS_TO_SHIM;
  call.flags |= function_filter(function).flags;
  arctrace_shim_enter(function, &call);
}

void exit(uintptr_t function, arctrace_shim_call call) {
  if (call.hook_site == call.call_site) {
    // The function's last act was to jump here, so this returns to its caller.
    arctrace_shim_exit_at(function, call.stack_pointer, call.stack_pointer);
    return;
  }
  if (arctrace_shim_exit(function, call.stack_pointer) != 0) return;
  // By now the function may have copies of its return address further down on the stack.
  const uintptr_t call_site = std::exchange(call.call_site, 0);
  locate_frame(0, call);
  const bool known = (call.flags & ARCTRACE_SHIM_CFA_GUESSED) == 0;
  call.call_site = call_site;
  if (known) arctrace_shim_before_exit(&call);
  arctrace_shim_exit_at(function, known ? call.cfa : 0, call.stack_pointer);
}

bool is_libcs(uintptr_t function) {
  const auto known = reinterpret_cast<uintptr_t>(&gnu_get_libc_version);
  return file_of_function(known, "").module.contains(function);
}

template <class Function>
uintptr_t address_of(Function* function) {
  return reinterpret_cast<uintptr_t>(function);
}

FunctionHook* next_hook(const char* name) {
  const uintptr_t found = find_function(name, SearchFrom::kNext);
  return found == 0 || is_libcs(found) ? nullptr : reinterpret_cast<FunctionHook*>(found);
}

}  // namespace

void start_function_hooks() {
  next_enter = next_hook("__cyg_profile_func_enter");
  next_exit = next_hook("__cyg_profile_func_exit");
  arctrace_shim_set_slow_hooks(arctrace_function_entered, arctrace_function_exited);
  // The fast hooks don't know of other hooks.
  if (next_enter == nullptr) arctrace_fast_enter_hook = arctrace_shim_function_enter;
  if (next_exit == nullptr) arctrace_fast_exit_hook = arctrace_shim_function_exit;
  if constexpr (machine::kHasStraightHooks) {
    if (next_enter == nullptr) {
      lead_calls("__cyg_profile_func_enter", address_of(__cyg_profile_func_enter),
                 address_of(arctrace_shim_enter_hook));
    }
    if (next_exit == nullptr) {
      lead_calls("__cyg_profile_func_exit", address_of(__cyg_profile_func_exit),
                 address_of(arctrace_shim_exit_hook));
    }
  }
}

}  // namespace arctrace::shim

using namespace arctrace::shim;

arctrace_shim_function_hook* arctrace_fast_enter_hook;
arctrace_shim_function_hook* arctrace_fast_exit_hook;

void arctrace_function_entered(uintptr_t function, uintptr_t call_site,
                               uintptr_t stack_pointer, uintptr_t frame_pointer,
                               uintptr_t hook_site) {
  if (functions_gate_is_open()) {
    with_stack_space([=] {
      enter(function, {0, stack_pointer, frame_pointer, hook_site, call_site, 0});
    });
  }
  if (next_enter != nullptr) {
    next_enter(reinterpret_cast<void*>(function), reinterpret_cast<void*>(call_site));
  }
}

void arctrace_function_exited(uintptr_t function, uintptr_t call_site,
                              uintptr_t stack_pointer, uintptr_t frame_pointer,
                              uintptr_t hook_site) {
  if (functions_gate_is_open()) {
    with_stack_space([=] {
      exit(function, {0, stack_pointer, frame_pointer, hook_site, call_site, 0});
    });
  }
  if (next_exit != nullptr) {
    next_exit(reinterpret_cast<void*>(function), reinterpret_cast<void*>(call_site));
  }
}
