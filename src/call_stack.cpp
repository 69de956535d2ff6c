#include "src/call_stack.hpp"

#include <atomic>

namespace arctrace {
namespace {

constexpr uint32_t kNone = UINT32_MAX;

arctrace_shim_unwinder* unwinder;  // set once, before the first hook needs it

// How many of the open frames we keep: the outermost ones.
uint32_t kept_frames(const ThreadState& state) {
  return state.depth < ThreadState::kMaxFrames ? state.depth : ThreadState::kMaxFrames;
}

// The depth first: the frames of a signal handler that comes between go above this one.
void push(ThreadState& state, uint64_t key, const FramePlace& place) {
  const uint32_t at = state.depth;
  state.depth = at + 1;
  std::atomic_signal_fence(std::memory_order_seq_cst);
  if (at < ThreadState::kMaxFrames) state.frames[at] = {key, place};
}

void record_unwind(const WriteScope& scope, ThreadState& state, uint32_t depth,
                   uint64_t ticks) {
  if (depth >= state.depth) return;
  const uint32_t count = state.depth - depth;
  write_record(scope, ARCTRACE_TYPE_UNWIND, 4, ticks,
               [count](std::byte* body) { store_u32(body, count); });
  state.depth = depth;
}

// The depth without the frames that lie below `now` on the stack, and what was entered
// inside them.
uint32_t depth_above(const ThreadStacks& stacks, const ThreadState& state,
                     const FramePlace& now) {
  const uint32_t kept = kept_frames(state);
  uint32_t depth = state.depth;
  for (uint32_t i = kept; i > 0; --i) {
    const FramePlace& open = state.frames[i - 1].place;
    if (open.location == 0) continue;
    if (!lies_below(stacks, open, now)) break;
    depth = i - 1;
  }
  return depth;
}

// The depth without those frames either whose machine frame's place `key` takes, entered
// at `now`: it returns to somewhere else, or its hook is called from the same place once
// more, or it is a function of its own there, not one inlined into the former.
uint32_t depth_at_entry(const ThreadStacks& stacks, const ThreadState& state,
                        uint64_t key, const FramePlace& now) {
  uint32_t depth = depth_above(stacks, state, now);
  if (depth > ThreadState::kMaxFrames || now.hook_site == 0) return depth;
  bool is_own_frame = now.has(ARCTRACE_SHIM_BEGINS_FRAME);
  uint32_t bottom = depth;
  uint32_t replaced = kNone;
  while (bottom > 0 && state.frames[bottom - 1].place.location == now.location) {
    const OpenFrame& open = state.frames[--bottom];
    if (open.place.hook_site == 0) continue;
    if (open.place.call_site != now.call_site || open.place.hook_site == now.hook_site) {
      replaced = bottom;
    }
    if (open.key == key && open.place.has(ARCTRACE_SHIM_BEGINS_FRAME)) {
      is_own_frame = false;
    }
  }
  if (is_own_frame) replaced = bottom;
  return replaced < depth ? replaced : depth;
}

// The depth without those of the outermost `depth` frames that lie between the call and
// its caller, or that one's caller, and so on: where machine frames follow one another,
// none can lie between them.
uint32_t depth_of_callers(const ThreadStacks& stacks, const ThreadState& state,
                          uint32_t depth, arctrace_shim_call frame) {
  constexpr uint32_t kStepsMax = 32;
  using Which = ThreadStacks::Which;
  if (depth > ThreadState::kMaxFrames || unwinder == nullptr ||
      (frame.flags & ARCTRACE_SHIM_LOCATION_GUESSED) != 0 ||
      stacks.which(frame.location) != Which::kOwn) {
    return depth;
  }
  uint32_t i = depth;
  while (i > 0 && state.frames[i - 1].place.location == 0) --i;
  if (i == 0 || state.frames[i - 1].place.location == frame.location) return depth;
  for (uint32_t step = 0; step < kStepsMax; ++step) {
    const uintptr_t callee = frame.location;
    if (unwinder(&frame, stacks.own.high) == 0 || frame.location <= callee) return depth;
    for (; i > 0; --i) {
      const FramePlace& open = state.frames[i - 1].place;
      if (open.location == 0) continue;
      if (open.location == frame.location || stacks.which(open.location) != Which::kOwn ||
          open.has(ARCTRACE_SHIM_LOCATION_GUESSED)) {
        return depth;
      }
      if (open.location > frame.location) break;
      depth = i - 1;
    }
    if (i == 0) return depth;
  }
  return depth;
}

// Whether the innermost frame is surely open when a function is entered at `now`, because
// it lies further up and the last call from it, or one like it, came from there too.
bool is_surely_open(const ThreadState& state, const FramePlace& now) {
  const uint32_t depth = state.depth;
  if (depth == 0) return true;
  if (depth >= ThreadState::kMaxFrames) return false;
  const FramePlace& last = state.frames[depth].place;
  return state.frames[depth - 1].place.location > now.location &&
         last.location == now.location && last.call_site == now.call_site;
}

void enter(uint64_t key, const FramePlace& place, const arctrace_shim_call* call) {
  const WriteScope scope;
  if (scope.refuses_record()) return;
  const uint64_t ticks = session_ticks();
  ThreadState* state = scope.local().state;
  // A handler that interrupts this very code can't rely on the frames.
  if (__builtin_expect(state != nullptr && !is_surely_open(*state, place), 0) &&
      place.location != 0 && !scope.nested()) {
    const ThreadStacks& stacks = scope.local().stacks;
    uint32_t depth = depth_at_entry(stacks, *state, key, place);
    if (call != nullptr) depth = depth_of_callers(stacks, *state, depth, *call);
    record_unwind(scope, *state, depth, ticks);
  }
  write_record(scope, ARCTRACE_TYPE_ENTER, 8, ticks,
               [key](std::byte* body) { store_u64(body, key); });
  // The frame is open even if its record is lost: the next block's STACK tells it.
  state = scope.local().state;
  if (state != nullptr) push(*state, key, place);
}

// The innermost frame of `key` among the outermost `depth`; kNone: there is none.
uint32_t find_frame(const ThreadState& state, uint64_t key, uint32_t depth) {
  while (depth > 0) {
    if (state.frames[--depth].key == key) return depth;
  }
  return kNone;
}

void write_exit(const WriteScope& scope, ThreadState& state, uint64_t ticks) {
  write_record(scope, ARCTRACE_TYPE_EXIT, 0, ticks, [](std::byte*) {});
  --state.depth;
}

// An exit of a frame that we do not know.
void write_named_exit(const WriteScope& scope, uint64_t key, uint64_t ticks) {
  write_record(scope, ARCTRACE_TYPE_EXIT_NAMED, 8, ticks,
               [key](std::byte* body) { store_u64(body, key); });
}

// Whether the frame at `open` is further out than the machine frame at `location`.
bool is_another_call(const ThreadStacks& stacks, const FramePlace& open,
                     uintptr_t location) {
  return stacks.which(location) == ThreadStacks::Which::kOwn &&
         open.location > location && !open.has(ARCTRACE_SHIM_LOCATION_GUESSED);
}

bool is_innermost(const ThreadState* state, uint64_t key) {
  return state != nullptr && state->depth > 0 &&
         state->depth <= ThreadState::kMaxFrames &&
         state->frames[state->depth - 1].key == key;
}

}  // namespace

void record_enter(uint64_t key, uintptr_t location) {
  enter(key, FramePlace(location), nullptr);
}

void record_enter(uint64_t key, const arctrace_shim_call& call) {
  enter(key, FramePlace(call), &call);
}

void set_unwinder(arctrace_shim_unwinder* chosen) { unwinder = chosen; }

bool record_innermost_exit(uint64_t key, uintptr_t stack_pointer) {
  const WriteScope scope;
  if (scope.refuses_record()) return true;
  ThreadState* state = scope.local().state;
  if (__builtin_expect(!is_innermost(state, key), 0) ||
      state->frames[state->depth - 1].place.stack_pointer != low_half(stack_pointer)) {
    return false;
  }
  write_exit(scope, *state, session_ticks());
  return true;
}

void record_exit(uint64_t key, uintptr_t location) {
  const WriteScope scope;
  if (scope.refuses_record()) return;
  const uint64_t ticks = session_ticks();
  ThreadState* state = scope.local().state;
  if (is_innermost(state, key) &&
      (location == 0 || state->frames[state->depth - 1].place.location == location)) {
    write_exit(scope, *state, ticks);
    return;
  }
  state = recording_thread(scope, ticks);
  if (state == nullptr) return;
  if (!scope.nested()) {
    const FramePlace now(location);
    record_unwind(scope, *state, depth_above(scope.local().stacks, *state, now), ticks);
  }
  if (state->depth > ThreadState::kMaxFrames) {
    write_named_exit(scope, key, ticks);  // the reader knows the frame
    --state->depth;
    return;
  }
  const uint32_t found = find_frame(*state, key, state->depth);
  if (found == kNone ||
      is_another_call(scope.local().stacks, state->frames[found].place, location)) {
    write_named_exit(scope, key, ticks);
    return;
  }
  record_unwind(scope, *state, found + 1, ticks);
  write_exit(scope, *state, ticks);
}

void record_vfork_begin() {
  const WriteScope scope;
  if (scope.refuses_record()) return;
  write_record(scope, ARCTRACE_TYPE_VFORK_BEGIN, 0, session_ticks(), [](std::byte*) {});
  if (ThreadState* state = scope.local().state; state != nullptr) {
    state->vfork_depth = state->depth;
  }
}

void record_vfork_end(uint32_t child_pid) {
  const WriteScope scope;
  if (scope.refuses_record()) return;
  write_record(scope, ARCTRACE_TYPE_VFORK_END, 4, session_ticks(),
               [child_pid](std::byte* body) { store_u32(body, child_pid); });
  // The child only ever added to the frames that were open, or left some of them.
  if (ThreadState* state = scope.local().state; state != nullptr) {
    state->depth = state->vfork_depth;
  }
}

}  // namespace arctrace
