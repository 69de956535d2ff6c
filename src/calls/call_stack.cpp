#include "src/calls/call_stack.hpp"

#include <atomic>

#include "src/base/memory.hpp"
#include "src/calls/call_filter.hpp"
#include "src/calls/fast_path.hpp"
#include "src/stack/left_frames.hpp"
#include "src/writer/stack_change.hpp"

namespace arctrace {
namespace {

constexpr uint32_t kNone = UINT32_MAX;

void record_unwind(ScopeKind scope, ThreadState& state, uint32_t depth, uint64_t ticks) {
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

// Records that frames were left which can't be open when `key` is entered at `place`.
// By values, as all that is rare: who enters keeps them in registers.
__attribute__((noinline)) void leave_frames(ScopeKind scope, uint64_t key,
                                            FramePlace place, arctrace_shim_call call,
                                            uint64_t ticks) {
  ThreadState& state = *scope.local().state;
  const uint32_t depth = depth_at_entry(scope.local().stacks, state, key, place, call);
  record_unwind(scope, state, depth, ticks);
}

// False: there is no state to keep the frame in. store(state, at) keeps it, at that
// index.
template <class Store>
bool write_enter(ScopeKind scope, uint64_t key, uint64_t ticks, const Store& store) {
  return with_record(scope, ARCTRACE_TYPE_ENTER, 8, ticks,
                     [&](const Reservation& record) {
                       ThreadState* state = scope.local().state;
                       if (state == nullptr) return false;
                       const uint32_t at = state->depth;
                       complete_enter(scope, *state, record, key, at,
                                      [&](ThreadState& to) { store(to, at); });
                       return true;
                     });
}

// Adds a frame that readers are not told of, or not yet.
template <class Store>
void push_untold(ScopeKind scope, ThreadState& state, FilteredFrame::Telling telling,
                 const Store& store) {
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
FilteredFrame filter_call(ScopeKind scope, uint64_t key, const FramePlace& place,
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

__attribute__((noinline)) bool enter_filtered(ScopeKind scope, uint64_t key,
                                              FramePlace place, arctrace_shim_call call,
                                              uint64_t ticks,
                                              const ValuesBody* arguments) {
  ThreadState* state = recording_thread(scope, ticks);
  if (state == nullptr) return false;
  FilteredFrame filtered = filter_call(scope, key, place, call, ticks);
  if (arguments != nullptr && filtered.telling == FilteredFrame::Telling::kWaiting) {
    keep_arguments(*state, filtered, *arguments);
  }
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
void write_values(ScopeKind scope, uint16_t type, const ValuesBody& values,
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

// `arguments`: null, none.
bool enter(uint64_t key, const arctrace_shim_call& call, uintptr_t here,
           const ValuesBody* arguments) {
  const WriteScope scope(here);
  if (scope.refuses_record()) return false;
  if (scope.nested()) resolve_change(scope.local());
  const uint64_t ticks = session_ticks();
  const FramePlace place(call);
  bool entered;
  if (filter_is_active()) {
    entered = enter_filtered(scope, key, place, call, ticks, arguments);
  } else {
    const ThreadState* state = scope.local().state;
    if (state != nullptr && place.location != 0 &&
        !is_surely_open(scope.local().stacks, *state, place)) {
      leave_frames(scope, key, place, call, ticks);
    }
    entered = write_enter(scope, key, ticks, [&](ThreadState& to, uint32_t at) {
      store_frame(to, at, key, place);
    });
  }
  if (entered && arguments != nullptr) {
    write_values(scope, ARCTRACE_TYPE_ARGUMENTS, *arguments, ticks);
  }
  return entered;
}

// By value: who takes the straight path makes no call of it.
__attribute__((noinline)) bool enter_the_long_way(uint64_t key, arctrace_shim_call call,
                                                  uintptr_t here) {
  return enter(key, call, here, nullptr);
}

// The innermost frame of `key` among the outermost `depth`; kNone: there is none.
uint32_t find_frame(const ThreadState& state, uint64_t key, uint32_t depth) {
  while (depth > 0) {
    if (state.frames[--depth].key == key) return depth;
  }
  return kNone;
}

// Of the innermost frame. `result`: before its exit; null: none.
void write_exit(ScopeKind scope, ThreadState& state, const ValuesBody* result,
                uint64_t ticks) {
  if (result != nullptr) write_values(scope, ARCTRACE_TYPE_RESULT, *result, ticks);
  if (!frame_is_told(state, state.depth - 1)) {
    state.depth = state.depth - 1;
    return;
  }
  with_record(scope, ARCTRACE_TYPE_EXIT, 0, ticks, [&](const Reservation& record) {
    commit_change(scope, state, record, state.depth - 1, [] {});
  });
}

// An exit of a frame that we do not know, after which `depth` are open.
void write_named_exit(ScopeKind scope, ThreadState& state, uint64_t key, uint32_t depth,
                      uint64_t ticks) {
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

// Whether functions were off at times, so that some may be open of which readers were not
// told.
bool was_off_meanwhile() {
  arctrace_control& control = session.view.control();
  IpcAtomics::load_acquire(control.gate);  // R2, matches R1 (Buffer::set_gate)
  return IpcAtomics::load_relaxed(control.functions_on) > 1;
}

// Of a frame that is not the innermost one as we know it. `result`: null, none.
__attribute__((noinline)) void leave_another(ScopeKind scope, uint64_t key,
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
  write_exit(scope, *state, result, ticks);
}

__attribute__((noinline)) bool enter_stub_the_long_way(uint64_t key, StubCall call) {
  return enter_the_long_way(key, call.described(), call.here());
}

__attribute__((noinline)) void exit_the_long_way(uint64_t key, uintptr_t location,
                                                 uintptr_t here,
                                                 const ValuesBody* result) {
  const WriteScope scope(here);
  if (scope.refuses_record()) return;
  if (scope.nested()) resolve_change(scope.local());
  const uint64_t ticks = session_ticks();
  ThreadState* state = scope.local().state;
  if (filter_is_active() && state != nullptr && state->attached) {
    tell_long_calls(scope, *state, ticks);
  }
  const OpenFrame* innermost = state != nullptr ? innermost_frame(*state, key) : nullptr;
  if (innermost != nullptr && (location == 0 || innermost->place.location == location)) {
    write_exit(scope, *state, result, ticks);
  } else {
    leave_another(scope, key, location, ticks, result);
  }
  if (filter_is_active()) note_filter_scope(scope.local());
}

// `result`: null, none.
__attribute__((noinline)) bool exit_innermost_the_long_way(uint64_t key,
                                                           uintptr_t stack_pointer,
                                                           const ValuesBody* result) {
  const WriteScope scope(stack_pointer);
  if (scope.refuses_record()) return true;
  if (scope.nested()) resolve_change(scope.local());
  ThreadState* state = scope.local().state;
  const OpenFrame* innermost = state != nullptr ? innermost_frame(*state, key) : nullptr;
  if (innermost == nullptr || innermost->place.stack_pointer != low_half(stack_pointer)) {
    return false;
  }
  const uint64_t ticks = session_ticks();
  if (filter_is_active()) tell_long_calls(scope, *state, ticks);
  write_exit(scope, *state, result, ticks);
  if (filter_is_active()) note_filter_scope(scope.local());
  return true;
}

}  // namespace

bool record_enter(uint64_t key, uintptr_t location) {
  const uintptr_t here = stack_pointer();
  if (__builtin_expect(enter_straight(key, FramePlace(location), here), 1)) return true;
  arctrace_shim_call call{};
  call.location = location;
  return enter_the_long_way(key, call, here);
}

bool record_enter(uint64_t key, const arctrace_shim_call& call) {
  if (__builtin_expect(enter_straight(key, FramePlace(call), call.stack_pointer), 1)) {
    return true;
  }
  return enter_the_long_way(key, call, call.stack_pointer);
}

bool record_enter(uint64_t key, const StubCall& call) {
  if (__builtin_expect(enter_straight(key, FramePlace(call.described()), call.here()),
                       1)) {
    return true;
  }
  return enter_stub_the_long_way(key, call);
}

bool record_enter_with(uint64_t key, const StubCall& call, const ValuesBody& arguments) {
  return enter(key, call.described(), call.here(), &arguments);
}

bool record_innermost_exit(uint64_t key, uintptr_t stack_pointer) {
  const auto is_left = [stack_pointer](const FramePlace& place) {
    return place.stack_pointer == low_half(stack_pointer);
  };
  return __builtin_expect(leave_straight(key, stack_pointer, is_left), 1) ||
         exit_innermost_the_long_way(key, stack_pointer, nullptr);
}

bool record_innermost_exit_with(uint64_t key, uintptr_t stack_pointer,
                                const ValuesBody& result) {
  return exit_innermost_the_long_way(key, stack_pointer, &result);
}

void record_exit(uint64_t key, uintptr_t location, uintptr_t stack_pointer) {
  const auto is_left = [location](const FramePlace& place) {
    return location == 0 || place.location == location;
  };
  if (__builtin_expect(leave_straight(key, stack_pointer, is_left), 1)) return;
  exit_the_long_way(key, location, stack_pointer, nullptr);
}

void record_exit_with(uint64_t key, uintptr_t location, uintptr_t stack_pointer,
                      const ValuesBody& result) {
  exit_the_long_way(key, location, stack_pointer, &result);
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
