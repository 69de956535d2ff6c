// Finds by their names the library functions that the shim can't call through like
// others, because they examine their caller, return more than once or never, or have
// another calling convention. For all other functions, their code shows it
// (writer_shim/plt/caller_readers.hpp).
#pragma once

#include <cstdint>

namespace arctrace::shim {

enum class CallKind : uint8_t {
  kUnexamined,  // wrapped or entry-only, as its code will show at the first call
  kWrapped,     // wrapped (called through): its entry and its exit are recorded
  // Entry-only: jumped to, with its exit recorded at once, because it examines its
  // caller, or returns twice.
  kEntryOnly,
  kLast,      // jumped to: it does not return
  kLongJump,  // like kLast; abandons the frames below its target's stack pointer
  // Frames-only: jumped to, in modules whose library calls are not recorded. Only the end
  // of frames is recorded that it abandons, or that were abandoned when it is called.
  kFramesOnlyJump,
  kFramesOnlyCatch,
  // Jumped to, with its exit recorded at once: the thread goes on on another stack, or a
  // coroutine gets its stack (writer_shim/plt/call_table.hpp). kLastSwitch: it does not
  // return.
  kStacks,
  kLastSwitch,
  kFramesOnlyStacks,
  // _Unwind_GetCFA, in place of which the shim's own is jumped to
  // (writer_shim/unwind/frame_finder.hpp), with its exit recorded at once.
  kFrameAddress,
  kFramesOnlyFrameAddress,
  kInitializer,  // a module's DT_INIT, jumped to after the module's slots are hooked
  kSkipped       // skipped: not hooked
};

// The kind of the function with this linker's name.
CallKind call_kind(const char* name);

// The function's kind in a module whose library calls are not recorded.
CallKind frames_only_call_kind(const char* name);

// Whether functions of this kind are entry-only: they return more than once, or examine
// their caller.
constexpr bool is_entry_only(CallKind kind) {
  return kind == CallKind::kEntryOnly || kind == CallKind::kStacks ||
         kind == CallKind::kFrameAddress;
}

}  // namespace arctrace::shim
