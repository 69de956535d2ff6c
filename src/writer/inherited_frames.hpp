// The frames in which a fork child begins: those that its forker had open. The forker's
// own records may not tell them, because they were lost or overwritten.
#pragma once

#include <cstdint>

#include "src/stack/fork_frames.hpp"

namespace arctrace {

struct ProcessState;
struct ThreadState;

// Keeps what the calling thread has open. To be called before it forks, by a function all
// of whose callers' frames are above `stack_end`.
void keep_frames_for_child(uintptr_t stack_end);

// To be called in the child: takes what was kept. `parent_id`: the identity of the
// process that forked.
void inherit_frames(uint32_t parent_id);

// The calling thread, which has no frame of its own open, leaves a function: the
// innermost inherited one of that key, and those inside it, are open no more.
void leave_inherited_frame(const ThreadState& state, uint64_t key);

// What was taken for this process, which is the calling one. Null: nothing is known.
const ForkFrames* inherited_frames(const ProcessState& process);

}  // namespace arctrace
