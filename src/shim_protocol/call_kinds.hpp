// Finds by their names the library functions that the shim can't call through like
// others, because they examine their caller, return more than once or never, or have
// another calling convention. What others do is found in their code
// (writer_shim/arch/caller_use.hpp).
#pragma once

#include <cstdint>

namespace arctrace::shim {

enum class CallKind : uint8_t {
  kUnexamined,  // kFollowed or kPassed, as the function's code will show at the first
                // call
  kFollowed,    // called through: its entry and its exit are recorded
  // Jumped to, with its exit recorded at once: it examines its caller, or returns twice.
  kPassed,
  kLast,      // jumped to: it does not return
  kLongJump,  // the same: it leaves frames, those below its target's stack pointer
  // Jumped to, of modules whose library calls are not recorded: only the frames are
  // recorded that it leaves, or that were left when it is called.
  kSilentJump,
  kSilentCatch,
  // Jumped to, with its exit recorded at once: the thread goes on on another stack, or a
  // coroutine gets its stack (writer_shim/plt/stack_calls.hpp). kLastSwitch: it does not
  // return.
  kStacks,
  kLastSwitch,
  kSilentStacks,
  // _Unwind_GetCFA, in place of which the shim's own is jumped to
  // (writer_shim/unwind/frame_address.hpp), with its exit recorded at once.
  kFrameAddress,
  kSilentFrameAddress,
  kInitializer,  // a module's DT_INIT, jumped to after the module's slots are hooked
  kUntouched     // not hooked
};

// The kind of the function with this linker's name.
CallKind call_kind(const char* name);

// Its kind in a module whose library calls are not recorded.
CallKind silent_call_kind(const char* name);

// Whether calls of this kind return more than once, or look at their caller.
constexpr bool is_passed(CallKind kind) {
  return kind == CallKind::kPassed || kind == CallKind::kStacks ||
         kind == CallKind::kFrameAddress;
}

}  // namespace arctrace::shim
