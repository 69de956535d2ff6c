// The path of nearly every entry and exit: of a thread's outermost writer call, with room
// in its block, over no frame that was jumped out of, without a filter. It is inlined
// into who records, and asks for each of that once; all else takes the long way, from its
// beginning (call_stack.cpp).
#pragma once

#include <cstdint>

#include "src/calls/call_filter.hpp"
#include "src/stack/frame_place.hpp"
#include "src/writer/stack_change.hpp"
#include "src/writer/writer.hpp"

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
         last.call_site == now.call_site && last.has_parent(innermost.fingerprint()) &&
         stacks.which(innermost.location) != ThreadStacks::Which::kSignal;
}

// What a frame at `at` has around it.
inline uint32_t parent_fingerprint(const ThreadState& state, uint32_t at) {
  return at == 0 ? 0 : state.frames[at - 1].place.fingerprint();
}

inline void store_frame(ThreadState& state, uint32_t at, uint64_t key, FramePlace place,
                        uint32_t parent) {
  place.set_parent(parent);
  state.frames[at] = {key, place};
}

// The innermost frame is to be at `at`.
inline void store_frame(ThreadState& state, uint32_t at, uint64_t key,
                        const FramePlace& place) {
  if (at >= ThreadState::kMaxFrames) return;
  store_frame(state, at, key, place, parent_fingerprint(state, at));
}

// The innermost frame, if it is `key`'s and kept; else null.
inline const OpenFrame* innermost_frame(const ThreadState& state, uint64_t key) {
  const uint32_t at = state.depth - 1;
  return at < ThreadState::kMaxFrames && state.frames[at].key == key ? &state.frames[at]
                                                                     : nullptr;
}

// Writes the entry of `key` and adds its frame, which is the one at `at` and kept by
// store(state).
template <class Store>
__attribute__((always_inline)) inline void complete_enter(ScopeKind scope,
                                                          ThreadState& state,
                                                          const Reservation& record,
                                                          uint64_t key, uint32_t at,
                                                          const Store& store) {
  if (record.word0 != nullptr) store_u64(record.body, key);
  scope.local().frame_disturbed = scope.nested();
  store(state);
  commit_change(scope, state, record, at + 1, [&] {
    if (__builtin_expect(scope.local().frame_disturbed, 0)) store(state);
    if (!scope.nested()) scope.local().frame_disturbed = false;
  });
}

// Calls use(scope, state, record) with a record begun that has `body_size` bytes behind
// its head, if fits(state) and the way is straight; `here`: of its WriteScope. False:
// nothing was done. Nothing is called on the way, and what is needed later is kept in
// few variables: the compiler then saves no registers.
template <class Fits, class Use>
__attribute__((always_inline)) inline bool go_straight(uintptr_t here, uint16_t type,
                                                       uint32_t body_size,
                                                       const Fits& fits, const Use& use) {
  if (__builtin_expect(
          is_inside_writer() || IpcAtomics::load_relaxed(session.goes_straight) == 0,
          0)) {
    return false;
  }
  OutermostScope scope(here);
  ThreadState* state = thread_local_state.state;
  if (__builtin_expect(state == nullptr, 0)) return scope.refuse();
  const uint32_t length = ARCTRACE_COMPACT_HEAD_SIZE + body_size;
  std::byte* place;
  if (__builtin_expect(!find_place(*state, length, place) || !fits(*state), 0)) {
    return scope.refuse();
  }
  const uint64_t from_base = ticks_from_base(*state, read_counter());
  if (__builtin_expect(from_base > UINT32_MAX, 0)) return scope.refuse();
  if (place == nullptr) __builtin_unreachable();  // it has room
  const Reservation record = begin_compact(*state, place, type, length, from_base);
  count_written(*state);
  use(scope, *state, record);
  return true;
}

// Records that the thread entered `key` at `place`, if fits(); with_frame() is called as
// the frame is added. False: nothing was done.
template <class Fits, class WithFrame>
__attribute__((always_inline)) inline bool enter_straight(uint64_t key,
                                                          const FramePlace& place,
                                                          uintptr_t here,
                                                          const Fits& fits,
                                                          const WithFrame& with_frame) {
  uint32_t at = 0;
  uint32_t parent = 0;
  return go_straight(
      here, ARCTRACE_TYPE_ENTER, sizeof key,
      [&](const ThreadState& state) {
        at = state.depth;
        if (at >= ThreadState::kMaxFrames) return false;
        parent = parent_fingerprint(state, at);
        return (place.location == 0 ||
                is_surely_open(thread_local_state.stacks, state, place)) &&
               fits();
      },
      [&](ScopeKind scope, ThreadState& state, const Reservation& record) {
        with_frame();
        complete_enter(scope, state, record, key, at,
                       [&](ThreadState& to) { store_frame(to, at, key, place, parent); });
      });
}

__attribute__((always_inline)) inline bool enter_straight(uint64_t key,
                                                          const FramePlace& place,
                                                          uintptr_t here) {
  return enter_straight(
      key, place, here, [] { return true; }, [] {});
}

// Records that the thread left its innermost frame, if that is `key`'s and
// is_left(place) says that it is the one; behind(): when it is left. False: nothing was
// done.
template <class IsLeft, class Behind>
__attribute__((always_inline)) inline bool leave_straight(uint64_t key, uintptr_t here,
                                                          const IsLeft& is_left,
                                                          const Behind& behind) {
  uint32_t left = 0;  // index of the frame
  return go_straight(
      here, ARCTRACE_TYPE_EXIT, 0,
      [&](const ThreadState& state) {
        left = state.depth - 1;
        const OpenFrame* innermost = innermost_frame(state, key);
        return innermost != nullptr && is_left(innermost->place);
      },
      [&](ScopeKind scope, ThreadState& state, const Reservation& record) {
        commit_change(scope, state, record, left, [] {});
        behind();
      });
}

template <class IsLeft>
__attribute__((always_inline)) inline bool leave_straight(uint64_t key, uintptr_t here,
                                                          const IsLeft& is_left) {
  return leave_straight(key, here, is_left, [] {});
}

}  // namespace arctrace
