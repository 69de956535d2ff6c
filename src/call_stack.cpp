#include "src/call_stack.hpp"

namespace arctrace {
namespace {

void push(ThreadState& state, uint64_t key, uintptr_t location) {
  if (state.depth < ThreadState::kMaxFrames) state.frames[state.depth] = {key, location};
  ++state.depth;
}

void record_unwind(const WriteScope& scope, ThreadState& state, uint32_t count,
                   uint64_t ticks) {
  write_record(scope, ARCTRACE_TYPE_UNWIND, 4, ticks,
               [count](std::byte* body) { store_u32(body, count); });
  state.depth -= count;
}

// Open frames that lie deeper in the thread's stack than the new one's place are gone:
// a longjmp or an exception went over them. Equal locations are functions inlined into
// one another. Other stacks (coroutines, signal stacks) can't be compared.
uint32_t frames_jumped_over(const ThreadState& state, uintptr_t location) {
  if (!state.on_own_stack(location)) return 0;
  uint32_t count = 0;
  while (count < state.depth) {
    const OpenFrame& frame = state.frames[state.depth - 1 - count];
    if (frame.location >= location || !state.on_own_stack(frame.location)) break;
    ++count;
  }
  return count;
}

// An exit that is not the innermost open frame's.
void record_other_exit(const WriteScope& scope, ThreadState& state, uint64_t key,
                       uint64_t ticks) {
  if (state.depth <= ThreadState::kMaxFrames) {
    for (uint32_t below = 1; below < state.depth; ++below) {
      if (state.frames[state.depth - 1 - below].key != key) continue;
      record_unwind(scope, state, below, ticks);
      write_record(scope, ARCTRACE_TYPE_EXIT, 0, ticks, [](std::byte*) {});
      --state.depth;
      return;
    }
  } else {
    --state.depth;  // beyond what we keep: the reader knows the frame
  }
  write_record(scope, ARCTRACE_TYPE_EXIT_NAMED, 8, ticks,
               [key](std::byte* body) { store_u64(body, key); });
}

}  // namespace

void record_enter(uint64_t key, uintptr_t location) {
  const WriteScope scope;
  if (scope.refused()) return;
  const uint64_t ticks = session_ticks();
  ThreadState* state = scope.local().state;
  if (__builtin_expect(location != 0 && state != nullptr && state->depth > 0 &&
                           state->depth <= ThreadState::kMaxFrames &&
                           state->frames[state->depth - 1].location < location,
                       0)) {
    if (const uint32_t gone = frames_jumped_over(*state, location); gone > 0) {
      record_unwind(scope, *state, gone, ticks);
    }
  }
  write_record(scope, ARCTRACE_TYPE_ENTER, 8, ticks,
               [key](std::byte* body) { store_u64(body, key); });
  // The frame is open even if its record is lost: the next block's STACK tells it.
  state = scope.local().state;
  if (state != nullptr) push(*state, key, location);
}

void record_exit(uint64_t key) {
  const WriteScope scope;
  if (scope.refused()) return;
  const uint64_t ticks = session_ticks();
  ThreadState* state = scope.local().state;
  if (__builtin_expect(state != nullptr && state->depth > 0 &&
                           state->depth <= ThreadState::kMaxFrames &&
                           state->frames[state->depth - 1].key == key,
                       1)) {
    write_record(scope, ARCTRACE_TYPE_EXIT, 0, ticks, [](std::byte*) {});
    --state->depth;
    return;
  }
  state = attached_thread(scope, ticks);
  if (state != nullptr) record_other_exit(scope, *state, key, ticks);
}

void record_vfork_begin() {
  const WriteScope scope;
  if (scope.refused()) return;
  write_record(scope, ARCTRACE_TYPE_VFORK_BEGIN, 0, session_ticks(), [](std::byte*) {});
  if (ThreadState* state = scope.local().state; state != nullptr) {
    state->vfork_depth = state->depth;
  }
}

void record_vfork_end(uint32_t child_pid) {
  const WriteScope scope;
  if (scope.refused()) return;
  write_record(scope, ARCTRACE_TYPE_VFORK_END, 4, session_ticks(),
               [child_pid](std::byte* body) { store_u32(body, child_pid); });
  // The child only ever added to the frames that were open, or left some of them.
  if (ThreadState* state = scope.local().state; state != nullptr) {
    state->depth = state->vfork_depth;
  }
}

}  // namespace arctrace
