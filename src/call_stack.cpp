#include "src/call_stack.hpp"

#include <atomic>

#include "src/call_filter.hpp"
#include "src/memory.hpp"
#include "src/stack_change.hpp"

namespace arctrace {
namespace {

constexpr uint32_t kNone = UINT32_MAX;

arctrace_shim_unwinder* unwinder;  // set once, before the first hook needs it

// How many of the open frames we keep: the outermost ones.
uint32_t kept_frames(const ThreadState& state) {
  return state.depth < ThreadState::kMaxFrames ? state.depth : ThreadState::kMaxFrames;
}

void record_unwind(const WriteScope& scope, ThreadState& state, uint32_t depth,
                   uint64_t ticks) {
  if (depth >= state.depth) return;
  const uint32_t count = told_frames(state, state.depth) - told_frames(state, depth);
  // What waits to be told is further in than what was told: it goes untold.
  if (state.first_waiting > depth) state.first_waiting = 0;
  if (count == 0) {
    state.depth = depth;
    return;
  }
  const Reservation record = reserve(scope, ARCTRACE_TYPE_UNWIND, 4, ticks);
  if (record.word0 != nullptr) store_u32(record.body, count);
  commit_change(scope, state, record, depth, [] {});
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
    const OpenFrame& open = state.frames[bottom - 1];
    // The library call that this is part of.
    if (open.place.has(ARCTRACE_SHIM_LIBRARY_CALL) &&
        now.has(ARCTRACE_SHIM_RETURNS_TO_SHIM)) {
      break;
    }
    --bottom;
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
// it lies further up and the last call from it, or from one like it, came from there too.
bool is_surely_open(const ThreadStacks& stacks, const ThreadState& state,
                    const FramePlace& now) {
  const uint32_t depth = state.depth;
  if (depth == 0) return true;
  if (depth >= ThreadState::kMaxFrames) return false;
  const FramePlace& innermost = state.frames[depth - 1].place;
  const FramePlace& last = state.frames[depth].place;
  return innermost.location > now.location && last.location == now.location &&
         last.call_site == now.call_site && last.has_parent(innermost) &&
         stacks.which(innermost.location) != ThreadStacks::Which::kSignal;
}

// Records that frames were left which can't be open when `key` is entered at `place`.
// By values, as all that is rare: who enters keeps them in registers.
__attribute__((noinline)) void leave_frames(const WriteScope& scope, uint64_t key,
                                            FramePlace place, arctrace_shim_call call,
                                            uint64_t ticks) {
  const ThreadStacks& stacks = scope.local().stacks;
  ThreadState& state = *scope.local().state;
  uint32_t depth = depth_at_entry(stacks, state, key, place);
  if (call.stack_pointer != 0) depth = depth_of_callers(stacks, state, depth, call);
  record_unwind(scope, state, depth, ticks);
}

// The innermost frame is to be at `at`.
void store_frame(ThreadState& state, uint32_t at, uint64_t key, const FramePlace& place) {
  if (at >= ThreadState::kMaxFrames) return;
  state.frames[at] = {key, place};
  if (at > 0) state.frames[at].place.set_parent(state.frames[at - 1].place);
}

// False: there is no state to keep the frame in. `store` keeps it, at the index that it
// is given.
template <class Store>
__attribute__((always_inline)) inline bool write_enter(const WriteScope& scope,
                                                       uint64_t key, uint64_t ticks,
                                                       const Store& store) {
  return with_record(scope, ARCTRACE_TYPE_ENTER, 8, ticks,
                     [&](const Reservation& record) {
                       ThreadState* state = scope.local().state;
                       if (state == nullptr) return false;
                       if (record.word0 != nullptr) store_u64(record.body, key);
                       const uint32_t at = state->depth;
                       scope.local().frame_disturbed = scope.nested();
                       store(*state, at);
                       commit_change(scope, *state, record, at + 1, [&] {
                         if (__builtin_expect(scope.local().frame_disturbed, 0))
                           store(*state, at);
                       });
                       return true;
                     });
}

// Adds a frame that readers are not told of, or not yet.
template <class Store>
void push_untold(const WriteScope& scope, ThreadState& state,
                 FilteredFrame::Telling telling, const Store& store) {
  const uint32_t at = state.depth;
  scope.local().frame_disturbed = scope.nested();
  store(state, at);
  std::atomic_signal_fence(std::memory_order_seq_cst);
  state.depth = at + 1;
  std::atomic_signal_fence(std::memory_order_seq_cst);
  if (__builtin_expect(scope.local().frame_disturbed, 0)) store(state, at);
  const bool waits = telling == FilteredFrame::Telling::kWaiting;
  if (waits && (state.first_waiting == 0 || state.first_waiting > at + 1)) {
    state.first_waiting = at + 1;
  }
}

// The filter's view of a call that is about to be entered, behind the frames that can't
// be open then. REQUIRES: the thread is attached.
FilteredFrame filter_call(const WriteScope& scope, uint64_t key, const FramePlace& place,
                          const arctrace_shim_call& call, uint64_t ticks) {
  ThreadState& state = *scope.local().state;
  tell_long_calls(scope, state, ticks);
  if (place.location != 0 && !is_surely_open(scope.local().stacks, state, place)) {
    leave_frames(scope, key, place, call, ticks);
  }
  FilteredFrame filtered = filtered_frame(scope.local(), call.flags, ticks);
  // What interrupts a record stands in another block: it can't wait.
  if (filtered.telling == FilteredFrame::Telling::kWaiting && scope.nested()) {
    filtered.telling = FilteredFrame::Telling::kTold;
  }
  return filtered;
}

__attribute__((noinline)) bool enter_filtered(const WriteScope& scope, uint64_t key,
                                              FramePlace place, arctrace_shim_call call,
                                              uint64_t ticks) {
  ThreadState* state = recording_thread(scope, ticks);
  if (state == nullptr) return false;
  const FilteredFrame filtered = filter_call(scope, key, place, call, ticks);
  const auto store = [&](ThreadState& to, uint32_t at) {
    store_frame(to, at, key, place);
    if (at < ThreadState::kMaxFrames) to.filtered[at] = filtered;
  };
  if (filtered.telling == FilteredFrame::Telling::kTold) {
    write_enter(scope, key, ticks, store);
  } else {
    push_untold(scope, *state, filtered.telling, store);
  }
  note_filter_scope(scope.local());
  return true;
}

// Of the innermost frame, if readers are told of it.
void write_values(const WriteScope& scope, uint16_t type, const ValuesBody& values,
                  uint64_t ticks) {
  const ThreadState* state = scope.local().state;
  if (values.size == 0 || state == nullptr || state->depth == 0 ||
      !frame_is_told(*state, state->depth - 1)) {
    return;
  }
  write_record(scope, type, values.size, ticks, [&values](std::byte* body) {
    copy_bytes(body, values.bytes, values.size);
  });
}

// For who has nothing to record behind an entry or before an exit.
constexpr auto kNothingMore = [](const WriteScope&, uint64_t) {};

// The path of a record is inlined by force: the filter's second copy of it would cost it
// that, and a third of its speed. Then more(scope, ticks) is called.
// `describe()` is the call of `place`, for what is rare.
template <class Describe, class More>
__attribute__((always_inline)) inline bool enter(uint64_t key, const FramePlace& place,
                                                 const Describe& describe,
                                                 const WriteScope& scope,
                                                 const More& more) {
  if (scope.refuses_record()) return false;
  if (__builtin_expect(scope.nested(), 0)) resolve_change(scope.local());
  const uint64_t ticks = session_ticks();
  if (__builtin_expect(filter_is_active(), 0)) {
    const bool entered = enter_filtered(scope, key, place, describe(), ticks);
    if (entered) more(scope, ticks);
    return entered;
  }
  ThreadState* state = scope.local().state;
  const ThreadStacks& stacks = scope.local().stacks;
  if (__builtin_expect(state != nullptr && !is_surely_open(stacks, *state, place), 0) &&
      place.location != 0) {
    leave_frames(scope, key, place, describe(), ticks);
  }
  const bool entered = write_enter(scope, key, ticks, [&](ThreadState& to, uint32_t at) {
    store_frame(to, at, key, place);
  });
  if (entered) more(scope, ticks);
  return entered;
}

// The innermost frame of `key` among the outermost `depth`; kNone: there is none.
uint32_t find_frame(const ThreadState& state, uint64_t key, uint32_t depth) {
  while (depth > 0) {
    if (state.frames[--depth].key == key) return depth;
  }
  return kNone;
}

__attribute__((always_inline)) inline void write_exit(const WriteScope& scope,
                                                      ThreadState& state,
                                                      uint64_t ticks) {
  if (!frame_is_told(state, state.depth - 1)) {
    state.depth = state.depth - 1;
    return;
  }
  with_record(scope, ARCTRACE_TYPE_EXIT, 0, ticks, [&](const Reservation& record) {
    commit_change(scope, state, record, state.depth - 1, [] {});
  });
}

// An exit of a frame that we do not know, after which `depth` are open.
void write_named_exit(const WriteScope& scope, ThreadState& state, uint64_t key,
                      uint32_t depth, uint64_t ticks) {
  const bool is_deep = filter_is_active() && state.depth > ThreadState::kMaxFrames;
  if (is_deep ? state.depth > state.told_depth : !unknown_exit_is_told(scope.local())) {
    state.depth = depth;
    return;
  }
  const Reservation record = reserve(scope, ARCTRACE_TYPE_EXIT_NAMED, 8, ticks);
  if (record.word0 != nullptr) store_u64(record.body, key);
  commit_change(scope, state, record, depth, [] {});
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

// Whether functions were off at times, so that some may be open of which readers were not
// told.
bool was_off_meanwhile() {
  arctrace_control& control = session.view.control();
  IpcAtomics::load_acquire(control.gate);  // R2, matches R1 (Buffer::set_gate)
  return IpcAtomics::load_relaxed(control.functions_on) > 1;
}

// Of a frame that is not the innermost one as we know it. `result`: null, none.
__attribute__((noinline)) void leave_another(const WriteScope& scope, uint64_t key,
                                             uintptr_t location, uint64_t ticks,
                                             const ValuesBody* result) {
  ThreadState* state = recording_thread(scope, ticks);
  if (state == nullptr) return;
  const ThreadStacks& stacks = scope.local().stacks;
  record_unwind(scope, *state, depth_above(stacks, *state, FramePlace(location)), ticks);
  if (state->depth > ThreadState::kMaxFrames) {
    write_named_exit(scope, *state, key, state->depth - 1, ticks);  // the reader knows it
    return;
  }
  const uint32_t found = find_frame(*state, key, state->depth);
  // The innermost frame is left by whoever says its name: gcc may inline the head of a
  // function, with its entry, and leave the rest, with its exit, a frame of its own.
  const bool innermost = found != kNone && found + 1 == state->depth;
  if (found == kNone ||
      (!innermost && is_another_call(stacks, state->frames[found].place, location))) {
    if (state->depth == 0 || !was_off_meanwhile()) {
      write_named_exit(scope, *state, key, state->depth, ticks);
    }
    return;
  }
  record_unwind(scope, *state, found + 1, ticks);
  if (result != nullptr) write_values(scope, ARCTRACE_TYPE_RESULT, *result, ticks);
  write_exit(scope, *state, ticks);
}

__attribute__((always_inline)) inline void leave(const WriteScope& scope, uint64_t key,
                                                 uintptr_t location,
                                                 const ValuesBody* result) {
  const uint64_t ticks = session_ticks();
  ThreadState* state = scope.local().state;
  if (__builtin_expect(filter_is_active(), 0) && state != nullptr && state->attached) {
    tell_long_calls(scope, *state, ticks);
  }
  if (is_innermost(state, key) &&
      (location == 0 || state->frames[state->depth - 1].place.location == location)) {
    if (result != nullptr) write_values(scope, ARCTRACE_TYPE_RESULT, *result, ticks);
    write_exit(scope, *state, ticks);
    return;
  }
  leave_another(scope, key, location, ticks, result);
}

}  // namespace

bool record_enter(uint64_t key, uintptr_t location) {
  return enter(
      key, FramePlace(location), [] { return arctrace_shim_call{}; }, WriteScope(),
      kNothingMore);
}

bool record_enter(uint64_t key, const arctrace_shim_call& call) {
  return enter(
      key, FramePlace(call), [&call] { return call; }, WriteScope(call.stack_pointer),
      kNothingMore);
}

bool record_enter(uint64_t key, const StubCall& call) {
  return enter(
      key, FramePlace(call.described()), [&call] { return call.described(); },
      WriteScope(reinterpret_cast<uintptr_t>(call.place)), kNothingMore);
}

bool record_enter_with(uint64_t key, const StubCall& call, const ValuesBody& arguments) {
  return enter(
      key, FramePlace(call.described()), [&call] { return call.described(); },
      WriteScope(reinterpret_cast<uintptr_t>(call.place)),
      [&arguments](const WriteScope& scope, uint64_t ticks) {
        write_values(scope, ARCTRACE_TYPE_ARGUMENTS, arguments, ticks);
      });
}

void set_unwinder(arctrace_shim_unwinder* chosen) { unwinder = chosen; }

namespace {

// Calls more(scope, ticks) before the exit.
template <class More>
__attribute__((always_inline)) inline bool exit_innermost(uint64_t key,
                                                          uintptr_t stack_pointer,
                                                          const More& more) {
  const WriteScope scope(stack_pointer);
  if (scope.refuses_record()) return true;
  if (__builtin_expect(scope.nested(), 0)) resolve_change(scope.local());
  ThreadState* state = scope.local().state;
  if (__builtin_expect(!is_innermost(state, key), 0) ||
      state->frames[state->depth - 1].place.stack_pointer != low_half(stack_pointer)) {
    return false;
  }
  const uint64_t ticks = session_ticks();
  if (__builtin_expect(filter_is_active(), 0)) {
    tell_long_calls(scope, *state, ticks);
    more(scope, ticks);
    write_exit(scope, *state, ticks);
    note_filter_scope(scope.local());
    return true;
  }
  more(scope, ticks);
  write_exit(scope, *state, ticks);
  return true;
}

}  // namespace

bool record_innermost_exit(uint64_t key, uintptr_t stack_pointer) {
  return exit_innermost(key, stack_pointer, kNothingMore);
}

bool record_innermost_exit_with(uint64_t key, uintptr_t stack_pointer,
                                const ValuesBody& result) {
  return exit_innermost(key, stack_pointer,
                        [&result](const WriteScope& scope, uint64_t ticks) {
                          write_values(scope, ARCTRACE_TYPE_RESULT, result, ticks);
                        });
}

void record_exit(uint64_t key, uintptr_t location, uintptr_t stack_pointer,
                 const ValuesBody* result) {
  const WriteScope scope(stack_pointer);
  if (scope.refuses_record()) return;
  if (__builtin_expect(scope.nested(), 0)) resolve_change(scope.local());
  leave(scope, key, location, result);
  if (__builtin_expect(filter_is_active(), 0)) note_filter_scope(scope.local());
}

bool is_left_out_by_filter(uint64_t key, arctrace_shim_call call) {
  const WriteScope scope(call.stack_pointer);
  if (scope.refused()) return false;  // what is lost will be counted
  if (__builtin_expect(scope.nested(), 0)) resolve_change(scope.local());
  const uint64_t ticks = session_ticks();
  ThreadState* state = attached_thread(scope, ticks);
  if (state == nullptr) return false;
  const FramePlace place(call);
  const FilteredFrame filtered = filter_call(scope, key, place, call, ticks);
  if (!is_without_effect(scope.local(), filtered)) return false;
  note_filter_scope(scope.local());
  store_frame(*state, state->depth, key, place);  // for the next call from there
  return true;
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
