// Saves the open frames of a thread that forks, for its child (definitions.hpp).
#include "src/base/large_table.hpp"
#include "src/base/memory.hpp"
#include "src/process/process_identity.hpp"
#include "src/stack/abandoned_frames.hpp"
#include "src/writer/definitions.hpp"
#include "src/writer/thread_state.hpp"

namespace arctrace::writer {
namespace {

// The inherited frames of this process. They survive fork, so that a child that takes no
// identity passes them to its own child.
ARCTRACE_LARGE_TABLE ForkFrames inherited;
uint32_t inherited_from;   // identity of the process that had them open; 0: none
uint32_t inherited_ended;  // so many of them, the innermost, have ended since

// Whether the thread is the one of a forked process that began in its parent's frames.
bool has_inherited(const ThreadState& state, const ProcessState& process) {
  return process.origin == ARCTRACE_ORIGIN_FORK && state.slot.tid == process.pid;
}

}  // namespace

void keep_frames_for_child(uintptr_t stack_end) {
  const ThreadLocal& local = thread_local_state;
  if (local.calls == nullptr) return;
  ForkFrames& kept = local.calls->at_fork;
  kept.are_known = false;
  const ThreadState* state = local.state;
  const ProcessState* process = process_state_of_session();
  if (state == nullptr || !state->attached || process == nullptr) return;
  kept.count = kept.depth = 0;
  if (has_inherited(*state, *process)) {
    const ForkFrames* own = inherited_frames(*process);
    if (own == nullptr) return;
    kept.depth = own->depth - inherited_ended;
    kept.count = own->count > inherited_ended ? own->count - inherited_ended : 0;
    copy_bytes(kept.keys, own->keys, kept.count * sizeof kept.keys[0]);
  }
  // Frames that a jump has abandoned are not counted, though the thread has not noticed
  // that yet.
  const uint32_t depth = depth_above(local.stacks, state->open, MachineFrame(stack_end));
  const uint32_t inherited_depth = kept.depth;
  const bool has_space = kept.count + depth <= OpenFrames::kMax;
  if (!has_space) kept.count = 0;
  for (uint32_t i = 0; i < depth && has_space; ++i) {
    if (state->filtered.is_hidden(i)) continue;
    kept.keys[kept.count++] = state->open.frames[i].key;
    ++kept.depth;
  }
  if (!has_space) kept.depth = inherited_depth + state->filtered.reported_frames(depth);
  kept.are_known = true;
}

bool inherit_frames(uint32_t parent_id) {
  const PendingCalls* calls = thread_local_state.calls;
  inherited_from = 0;
  inherited_ended = 0;
  if (calls == nullptr || !calls->at_fork.are_known) return false;
  const ForkFrames& kept = calls->at_fork;
  inherited.depth = kept.depth;
  inherited.count = kept.count;
  copy_bytes(inherited.keys, kept.keys, kept.count * sizeof kept.keys[0]);
  inherited_from = parent_id;
  return kept.count != 0 && (kept.keys[kept.count - 1] & ARCTRACE_FRAME_LIBRARY_BIT) != 0;
}

void leave_inherited_frame(const ThreadState& state, uint64_t key) {
  const ProcessState* process = process_state_of_session();
  if (process == nullptr || !has_inherited(state, *process)) return;
  const ForkFrames* own = inherited_frames(*process);
  if (own == nullptr) return;
  for (uint32_t ended = inherited_ended; ended < own->count; ++ended) {
    if (own->keys[own->count - ended - 1] != key) continue;
    inherited_ended = ended + 1;
    return;
  }
}

const ForkFrames* inherited_frames(const ProcessState& process) {
  // A child of a call that libc does not know has the memory of its parent.
  const bool are_its = process.origin == ARCTRACE_ORIGIN_FORK && inherited_from != 0 &&
                       inherited_from == process.parent_id;
  return are_its ? &inherited : nullptr;
}

}  // namespace arctrace::writer
