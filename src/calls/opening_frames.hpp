// The functions that a thread has open when its process is joined as it runs. No hook saw
// them begin, so they are found by unwinding, once, before the thread's first record, and
// become its outermost open frames: its first STACK lists them. Those that have no hook
// at their exit either are left when a later call shows it (src/stack/left_frames.hpp).
#pragma once

#include <cstdint>

#include "src/hook_abi/shim_types.h"
#include "src/writer/thread_local.hpp"
#include "src/writer/writer_call.hpp"

namespace arctrace {

// To be called when the process joins a session as it runs, before anything is recorded:
// `find` unwinds the thread that calls it.
void set_open_frames_finder(arctrace_shim_open_frames* find);

// The number of the last session that was joined so; 0: none.
extern __attribute__((visibility("hidden"))) uint32_t joined_running;

// Of a thread that begins now: no function is open that anybody asks for.
inline void begin_without_frames(ThreadLocal& local) {
  local.frames_known_in = IpcAtomics::load_relaxed(joined_running);
}

// For begin_with_open_frames(), which is to be called before the thread's first record.
inline bool may_have_open_frames(const ThreadLocal& local) {
  return local.frames_known_in != IpcAtomics::load_relaxed(joined_running);
}

// Finds what is open around `call`, if that is the first one of the thread that the
// session sees. `begins`: the function is about to begin; else it is open itself. Some us
// for each frame. REQUIRES: may_have_open_frames().
void begin_with_open_frames(Nesting nesting, const arctrace_shim_call& call, bool begins,
                            uint64_t ticks);

}  // namespace arctrace
