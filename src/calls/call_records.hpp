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
#include "src/process/gate.hpp"
#include "src/stack/call_edges.hpp"

namespace arctrace::writer {

// Record the entry of `key`, and first that the thread has abandoned the frames that
// can't be open any more. False: nothing could be recorded, too deep in signal handlers.
// Takes its arguments by value: a caller on the fast path keeps them in registers. `args`
// (null: none) are recorded after the entry or, if they are locks, in it, if readers
// learn of it.
__attribute__((noinline)) bool enter_slow(uint64_t key, arctrace_shim_call call,
                                          uintptr_t here, const ArgsBody* args);
__attribute__((noinline)) bool enter_stub_slow(uint64_t key, StubCall call);

// Has the thread begin with the functions that it has open (stack_switch.hpp), of which
// `call` is the innermost: it is about to be left. REQUIRES: may_have_open_frames().
void begin_before_exit(const arctrace_shim_call& call);

// `retval` (null: none) is recorded before the exit, if readers learned of the entry.
__attribute__((noinline)) void exit_slow(uint64_t key, uintptr_t cfa, uintptr_t here,
                                         const ArgsBody* retval);
__attribute__((noinline)) bool exit_innermost_slow(uint64_t key, uintptr_t stack_pointer,
                                                   const ArgsBody* retval);

// Records that the thread entered `key`, and first that it has abandoned the frames that
// can't be open any more. False: nothing could be recorded, too deep in signal handlers.
__attribute__((always_inline)) inline bool record_enter(uint64_t key,
                                                        const StubCall& call) {
  const auto frame = [&]() ARCTRACE_INLINED { return call.frame(*call.return_slot); };
  if (__builtin_expect(
          fast_path_is_open<ARCTRACE_GATE_FUNCTIONS>() &&
              enter_framed_fast(OwnBlock{kNowhereElse}, key, frame, call.here()),
          1)) {
    return true;
  }
  return enter_stub_slow(key, call);
}

// Records that the thread left the exit-hooked frame whose return address is at
// `return_slot`. False: there is none, as far as frames are kept.
__attribute__((noinline)) bool leave_exit_hooked_slow(uintptr_t return_slot);

// Records that the thread left its innermost frame, if that belongs to `key` and was
// entered at `stack_pointer`; else false.
__attribute__((always_inline)) inline bool exit_innermost_fast(uint64_t key,
                                                               uintptr_t stack_pointer) {
  const auto is_exited = [stack_pointer](const MachineFrame& frame) {
    return frame.stack_pointer == low_half(stack_pointer);
  };
  return __builtin_expect(
      fast_path_is_open<ARCTRACE_GATE_FUNCTIONS>() &&
          exit_fast(OwnBlock{kNowhereElse}, key, stack_pointer, is_exited),
      1);
}
__attribute__((always_inline)) inline bool record_innermost_exit(
    uint64_t key, uintptr_t stack_pointer) {
  return exit_innermost_fast(key, stack_pointer) ||
         exit_innermost_slow(key, stack_pointer, nullptr);
}

// Whether the thread has an open frame of `key` at `cfa`.
bool is_open_frame(uint64_t key, uintptr_t cfa);

// Whether nothing is recorded of a call that is about to be made, and the filter need not
// know of it either: then it should not be entered.
__attribute__((noinline)) bool is_filtered_out_slow(uint64_t key,
                                                    arctrace_shim_call call);
inline bool is_filtered_out(uint64_t key, const StubCall& call) {
  return __builtin_expect(filter_is_active(), 0) &&
         is_filtered_out_slow(key, call.described());
}

// Records that the thread has abandoned all frames below this stack pointer.
void record_abandoned_below(uintptr_t stack_pointer);

// Calls through stubs that the fast path does not take (library_calls.cpp). `args` is an
// index into the table of set_call_args(), and tells which arguments and return value of
// a call are recorded. `registers` then holds the integer registers that pass arguments.

// To be called once, before there is a call that has arguments.
void set_call_args(const arctrace_shim_call_args* all);

// Begins a call with arguments, as call_began_slow() does.
int call_began_with_args(uint64_t key, const StubCall& call, uint32_t args,
                         const uintptr_t* registers);

// Records the entry of a call that the stub jumps to, and its exit at once if it returns
// at all (`returns`).
void entry_only_call(uint64_t key, const StubCall& call, bool returns);
void entry_only_call_with_args(uint64_t key, const StubCall& call, bool returns,
                               uint32_t args, const uintptr_t* registers);

}  // namespace arctrace::writer
