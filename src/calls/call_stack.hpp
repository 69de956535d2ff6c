// Function entry and exit: the writer's own view of its thread's open frames, from
// which exits are matched, jumps over frames are seen, and blocks say how they begin.
#pragma once

#include <cstdint>

#include "src/calls/call_args.hpp"
#include "src/calls/call_filter.hpp"
#include "src/stack/frame_place.hpp"
#include "src/writer/writer.hpp"

namespace arctrace {

// A call that one of the shim's stubs makes on behalf of the program.
struct StubCall {
  const uintptr_t* place;  // of its return address
  uintptr_t frame_pointer;
  uint32_t flags;  // enum arctrace_shim_call_flags

  // The machine frame that the called function is about to make.
  arctrace_shim_call described() const {
    return {here() + sizeof(uintptr_t),
            here(),
            frame_pointer,
            *place,
            *place,
            flags | ARCTRACE_SHIM_BEGINS_FRAME | ARCTRACE_SHIM_LIBRARY_CALL};
  }
  uintptr_t here() const { return reinterpret_cast<uintptr_t>(place); }
};

// Records that the thread entered `key`, and first that it left the frames that can't be
// open any more. `location`: an address in the frame, 0 not known.
// False: it could not be, too deep in signal handlers.
bool record_enter(uint64_t key, uintptr_t location);
bool record_enter(uint64_t key, const arctrace_shim_call& call);
bool record_enter(uint64_t key, const StubCall& call);

// The same, with what was called: `arguments` behind the entry, if readers are told of
// it.
bool record_enter_with(uint64_t key, const StubCall& call, const ValuesBody& arguments);

// Records that the thread left `key`; `location`: of its machine frame, 0 not known;
// `stack_pointer`: at the call of the hook.
void record_exit(uint64_t key, uintptr_t location, uintptr_t stack_pointer);

// The same, with `result` before the exit, if readers were told of the entry.
void record_exit_with(uint64_t key, uintptr_t location, uintptr_t stack_pointer,
                      const ValuesBody& result);

// Records that the thread left its innermost frame, if that is `key`'s and was entered at
// `stack_pointer`; else false.
bool record_innermost_exit(uint64_t key, uintptr_t stack_pointer);

// The same, with `result` before the exit, if readers were told of the entry.
bool record_innermost_exit_with(uint64_t key, uintptr_t stack_pointer,
                                const ValuesBody& result);

// Whether nothing is recorded of a call that is about to be made, and the filter need not
// know of it either: then it should not be entered.
__attribute__((noinline)) bool is_left_out_by_filter(uint64_t key,
                                                     arctrace_shim_call call);
inline bool is_left_out(uint64_t key, const StubCall& call) {
  return __builtin_expect(filter_is_active(), 0) &&
         is_left_out_by_filter(key, call.described());
}

// Around a vfork child, which runs on its parent's stack and with its thread state.
void record_vfork_begin();
void record_vfork_end(uint32_t child_pid);

}  // namespace arctrace
