// The path of nearly every entry and exit: of a thread's outermost writer call, with room
// in its block, over no frame that was jumped out of, without a filter. It is inlined
// into who records, and asks for each of that once; all else takes the long way, from its
// beginning (call_stack.cpp).
#pragma once

#include <cstdint>

#include "src/call_filter.hpp"
#include "src/frame_place.hpp"
#include "src/stack_change.hpp"
#include "src/writer.hpp"

namespace arctrace {

// Whether the innermost frame is surely open when a function is entered at `now`, because
// it lies further up and the last call from it, or from one like it, came from there too.
inline bool is_surely_open(const ThreadStacks& stacks, const ThreadState& state,
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

// The innermost frame is to be at `at`.
inline void store_frame(ThreadState& state, uint32_t at, uint64_t key,
                        const FramePlace& place) {
  if (at >= ThreadState::kMaxFrames) return;
  state.frames[at] = {key, place};
  if (at > 0) state.frames[at].place.set_parent(state.frames[at - 1].place);
}

// The innermost frame, if it is `key`'s and kept; else null.
inline const OpenFrame* innermost_frame(const ThreadState& state, uint64_t key) {
  const uint32_t at = state.depth - 1;
  return at < ThreadState::kMaxFrames && state.frames[at].key == key ? &state.frames[at]
                                                                     : nullptr;
}

// Writes the entry of `key` and adds its frame, which store(state, index) keeps.
template <class Store>
__attribute__((always_inline)) inline void complete_enter(ScopeKind scope,
                                                          ThreadState& state,
                                                          const Reservation& record,
                                                          uint64_t key,
                                                          const Store& store) {
  if (record.word0 != nullptr) store_u64(record.body, key);
  const uint32_t at = state.depth;
  scope.local().frame_disturbed = scope.nested();
  store(state, at);
  commit_change(scope, state, record, at + 1, [&] {
    if (__builtin_expect(scope.local().frame_disturbed, 0)) store(state, at);
    if (!scope.nested()) scope.local().frame_disturbed = false;
  });
}

// Records that the thread entered `key` at `place`; `here`: of its WriteScope. False:
// nothing was done.
__attribute__((always_inline)) inline bool enter_straight(uint64_t key,
                                                          const FramePlace& place,
                                                          uintptr_t here) {
  constexpr uint32_t kLength = ARCTRACE_COMPACT_HEAD_SIZE + 8;
  if (__builtin_expect(is_inside_writer() || filter_is_active(), 0)) return false;
  const OutermostScope scope(here);
  ThreadState* state = thread_local_state.state;
  if (__builtin_expect(state == nullptr, 0)) return false;
  std::byte* const room = place_for(*state, kLength);
  if (__builtin_expect(room == nullptr, 0)) return false;
  if (place.location != 0 && !is_surely_open(thread_local_state.stacks, *state, place)) {
    return false;
  }
  const uint64_t ticks = session_ticks();
  const uint64_t from_base = ticks_from_base(*state, ticks);
  if (__builtin_expect(from_base > UINT32_MAX, 0)) return false;
  const Reservation record =
      begin_compact(*state, room, ARCTRACE_TYPE_ENTER, kLength, from_base);
  count_written(*state);
  complete_enter(scope, *state, record, key,
                 [&](ThreadState& to, uint32_t at) { store_frame(to, at, key, place); });
  return true;
}

// Records that the thread left its innermost frame, if that is `key`'s and
// is_left(place) says that it is the one. False: nothing was done.
template <class IsLeft>
__attribute__((always_inline)) inline bool leave_straight(uint64_t key, uintptr_t here,
                                                          const IsLeft& is_left) {
  constexpr uint32_t kLength = ARCTRACE_COMPACT_HEAD_SIZE;
  if (__builtin_expect(is_inside_writer() || filter_is_active(), 0)) return false;
  const OutermostScope scope(here);
  ThreadState* state = thread_local_state.state;
  if (__builtin_expect(state == nullptr, 0)) return false;
  std::byte* const room = place_for(*state, kLength);
  if (__builtin_expect(room == nullptr, 0)) return false;
  const OpenFrame* innermost = innermost_frame(*state, key);
  if (__builtin_expect(innermost == nullptr || !is_left(innermost->place), 0)) {
    return false;
  }
  const uint64_t ticks = session_ticks();
  const uint64_t from_base = ticks_from_base(*state, ticks);
  if (__builtin_expect(from_base > UINT32_MAX, 0)) return false;
  const Reservation record =
      begin_compact(*state, room, ARCTRACE_TYPE_EXIT, kLength, from_base);
  count_written(*state);
  commit_change(scope, *state, record, state->depth - 1, [] {});
  return true;
}

}  // namespace arctrace
