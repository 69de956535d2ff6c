// The functions that a thread has open when its process is joined as it runs. No hook saw
// them begin, so they are found by unwinding, once, before the thread's first record, and
// become its outermost open frames: its first STACK lists them. Those without a hook at
// their exit end when a later call shows it (src/stack/abandoned_frames.hpp).
#pragma once

#include <cstdint>

#include "src/hook_abi/shim_types.h"
#include "src/writer/thread_state.hpp"
#include "src/writer/writer_call.hpp"

namespace arctrace::writer {

// To be called when the process joins a session as it runs, before anything is recorded:
// `find` unwinds the thread that calls it.
void set_open_frames_finder(arctrace_shim_open_frames* find);

// The number of the last session that was joined while the process ran; 0: none.
extern __attribute__((visibility("hidden"))) uint32_t joined_running;

// Has a thread that begins now start without open functions, because nobody asks for any.
inline void begin_without_frames(ThreadLocal& local) {
  local.frames_known_in = IpcAtomics::load_relaxed(joined_running);
}

// Whether begin_with_open_frames() is to be called before the thread's first record.
inline bool may_have_open_frames(const ThreadLocal& local) {
  return local.frames_known_in != IpcAtomics::load_relaxed(joined_running);
}

// Finds the functions that are open around `call`, if that is the thread's first call
// that the session sees. `begins`: the function of `call` is about to begin; else it is
// open itself. Takes some us for each frame. REQUIRES: may_have_open_frames().
void begin_with_open_frames(Nesting nesting, const arctrace_shim_call& call, bool begins,
                            uint64_t ticks);

}  // namespace arctrace::writer
