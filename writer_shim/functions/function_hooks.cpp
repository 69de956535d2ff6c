// Compiled with a frame pointer, which on x86-64 and on aarch64 points to the caller's
// frame pointer, just below the return address: so hooks find their caller's registers.
#include "writer_shim/functions/function_hooks.hpp"

#include <dlfcn.h>
#include <unistd.h>

#include "writer_shim/base/glibc.hpp"
#include "writer_shim/base/hook.hpp"
#include "writer_shim/filter/function_filter.hpp"
#include "writer_shim/functions/functions_gate.hpp"
#include "writer_shim/plt/call_table.hpp"
#include "writer_shim/unwind/frame_finder.hpp"

namespace arctrace::shim {
namespace {

using FunctionHook = void(void* function, void* call_site);

FunctionHook* next_enter;  // null: there are only libc's hooks, which do nothing
FunctionHook* next_exit;

uintptr_t address_of(const void* pointer) { return reinterpret_cast<uintptr_t>(pointer); }

// The call of the hook that this is inlined into.
__attribute__((always_inline)) inline arctrace_shim_call this_call(
    const void* call_site) {
  const auto* frame = static_cast<const uintptr_t*>(__builtin_frame_address(0));
  arctrace_shim_call call;
  call.stack_pointer = address_of(__builtin_dwarf_cfa());
  call.frame_pointer = frame[0];
  call.hook_site = address_of(__builtin_extract_return_addr(__builtin_return_address(0)));
  call.call_site = address_of(call_site);
  return call;
}

// By value, so that the hook keeps no registers for the call.
__attribute__((noinline)) void exit_slowly(uintptr_t function, arctrace_shim_call call) {
  if (call.hook_site == call.call_site) {
    // The function's last act was to jump here: we return to its caller.
    arctrace_shim_exit_at(function, call.stack_pointer, call.stack_pointer);
    return;
  }
  locate_frame(0, call);
  const bool known = (call.flags & ARCTRACE_SHIM_LOCATION_GUESSED) == 0;
  arctrace_shim_exit_at(function, known ? call.location : 0, call.stack_pointer);
}

// Does without dladdr(), which would search all of libc's names.
bool is_libcs(void* function) {
  dl_find_object object{};
  if (_dl_find_object == nullptr ||
      _dl_find_object(reinterpret_cast<void*>(&gnu_get_libc_version), &object) != 0) {
    return false;
  }
  return function >= object.dlfo_map_start && function < object.dlfo_map_end;
}

FunctionHook* next_hook(const char* name) {
  void* found = dlsym(RTLD_NEXT, name);
  return found == nullptr || is_libcs(found) ? nullptr
                                             : reinterpret_cast<FunctionHook*>(found);
}

}  // namespace

void find_next_function_hooks() {
  next_enter = next_hook("__cyg_profile_func_enter");
  next_exit = next_hook("__cyg_profile_func_exit");
}

}  // namespace arctrace::shim

using namespace arctrace::shim;

ARCTRACE_HOOK __attribute__((flatten)) void __cyg_profile_func_enter(void* function,
                                                                     void* call_site) {
  if (functions_gate_is_open()) {
    arctrace_shim_call call = this_call(call_site);
    locate_frame(address_of(function), call);
    if (returns_to_stub(call.call_site)) call.flags |= ARCTRACE_SHIM_RETURNS_TO_SHIM;
    call.flags |= function_filter(address_of(function)).flags;
    arctrace_shim_enter(address_of(function), &call);
  }
  if (__builtin_expect(next_enter != nullptr, 0)) next_enter(function, call_site);
}

ARCTRACE_HOOK __attribute__((flatten)) void __cyg_profile_func_exit(void* function,
                                                                    void* call_site) {
  if (functions_gate_is_open()) {
    const uintptr_t stack_pointer = address_of(__builtin_dwarf_cfa());
    if (__builtin_extract_return_addr(__builtin_return_address(0)) == call_site ||
        arctrace_shim_exit(address_of(function), stack_pointer) == 0) {
      exit_slowly(address_of(function), this_call(call_site));
    }
  }
  if (__builtin_expect(next_exit != nullptr, 0)) next_exit(function, call_site);
}
