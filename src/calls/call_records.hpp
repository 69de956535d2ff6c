// Records function entry and exit, and keeps the writer's own view of its thread's open
// frames. By these frames exits are matched, jumps over frames are seen, and a new block
// begins with a STACK record.
//
// Each record_...() tries the fast path inline and calls its _slow form otherwise.
#pragma once

#include <cstdint>

#include "src/calls/call_args.hpp"
#include "src/calls/call_filter.hpp"
#include "src/calls/fast_path.hpp"
#include "src/hook_abi/shim_types.h"
#include "src/stack/machine_frame.hpp"

namespace arctrace {

// A call that one of the shim's stubs makes on behalf of the program.
struct StubCall {
  const uintptr_t* return_slot;  // where its return address stands
  uintptr_t frame_pointer;
  uint32_t flags;  // enum arctrace_shim_call_flags

  // The machine frame that the called function is about to make.
  arctrace_shim_call described() const {
    return {here() + sizeof(uintptr_t),
            here(),
            frame_pointer,
            *return_slot,
            *return_slot,
            flags | ARCTRACE_SHIM_BEGINS_FRAME | ARCTRACE_SHIM_LIBRARY_CALL};
  }
  uintptr_t here() const { return reinterpret_cast<uintptr_t>(return_slot); }
};

// Takes its arguments by value: a caller on the fast path keeps them in registers. `args`
// (null: none) are recorded after the entry, if readers learn of it.
__attribute__((noinline)) bool enter_slow(uint64_t key, arctrace_shim_call call,
                                          uintptr_t here, const ArgsBody* args);
__attribute__((noinline)) bool enter_stub_slow(uint64_t key, StubCall call);

// `retval` (null: none) is recorded before the exit, if readers learned of the entry.
__attribute__((noinline)) void exit_slow(uint64_t key, uintptr_t location, uintptr_t here,
                                         const ArgsBody* retval);
__attribute__((noinline)) bool exit_innermost_slow(uint64_t key, uintptr_t stack_pointer,
                                                   const ArgsBody* retval);

// Records that the thread entered `key`, and first that it left the frames that can't be
// open any more. `location`: an address in the frame; 0: not known.
// False: nothing could be recorded, too deep in signal handlers.
__attribute__((always_inline)) inline bool record_enter(uint64_t key,
                                                        uintptr_t location) {
  const uintptr_t here = stack_pointer();
  if (__builtin_expect(enter_fast(key, MachineFrame(location), here), 1)) return true;
  arctrace_shim_call call{};
  call.location = location;
  return enter_slow(key, call, here, nullptr);
}
__attribute__((always_inline)) inline bool record_enter(uint64_t key,
                                                        const arctrace_shim_call& call) {
  if (__builtin_expect(enter_fast(key, MachineFrame(call), call.stack_pointer), 1)) {
    return true;
  }
  return enter_slow(key, call, call.stack_pointer, nullptr);
}
__attribute__((always_inline)) inline bool record_enter(uint64_t key,
                                                        const StubCall& call) {
  if (__builtin_expect(enter_fast(key, MachineFrame(call.described()), call.here()), 1)) {
    return true;
  }
  return enter_stub_slow(key, call);
}

// Records that the thread left `key`. `location`: of its machine frame, 0: not known;
// `stack_pointer`: at the call of the hook.
__attribute__((always_inline)) inline void record_exit(uint64_t key, uintptr_t location,
                                                       uintptr_t stack_pointer) {
  const auto is_left = [location](const MachineFrame& frame) {
    return location == 0 || frame.location == location;
  };
  if (__builtin_expect(exit_fast(key, stack_pointer, is_left), 1)) return;
  exit_slow(key, location, stack_pointer, nullptr);
}

// Records that the thread left its innermost frame, if that belongs to `key` and was
// entered at `stack_pointer`; else false.
__attribute__((always_inline)) inline bool record_innermost_exit(
    uint64_t key, uintptr_t stack_pointer) {
  const auto is_left = [stack_pointer](const MachineFrame& frame) {
    return frame.stack_pointer == low_half(stack_pointer);
  };
  return __builtin_expect(exit_fast(key, stack_pointer, is_left), 1) ||
         exit_innermost_slow(key, stack_pointer, nullptr);
}

// Whether nothing is recorded of a call that is about to be made, and the filter need not
// know of it either: then it should not be entered.
__attribute__((noinline)) bool is_filtered_out_slow(uint64_t key,
                                                    arctrace_shim_call call);
inline bool is_filtered_out(uint64_t key, const StubCall& call) {
  return __builtin_expect(filter_is_active(), 0) &&
         is_filtered_out_slow(key, call.described());
}

// Around a vfork child, which runs on its parent's stack and with its thread state.
void record_vfork_begin();
void record_vfork_end(uint32_t child_pid);

}  // namespace arctrace
