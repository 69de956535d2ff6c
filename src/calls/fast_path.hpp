// The fast path of nearly every entry and exit: a thread's outermost writer call, with
// room in the thread's block, over no frame that was jumped out of, and without a filter.
// It is inlined into its callers and tests each of these conditions once. Everything else
// takes the slow path from its beginning (call_records.hpp).
#pragma once

#include <cstdint>

#include "src/process/session.hpp"
#include "src/stack/machine_frame.hpp"
#include "src/writer/reservation.hpp"
#include "src/writer/stack_change.hpp"
#include "src/writer/writer_call.hpp"

namespace arctrace {

// Writes the entry of `key` and adds its frame, which is the one with index `at`;
// store(open) keeps it there.
template <class Store>
__attribute__((always_inline)) inline void complete_enter(Nesting nesting,
                                                          ThreadState& state,
                                                          const Reservation& record,
                                                          uint64_t key, uint32_t at,
                                                          const Store& store) {
  if (record.word0 != nullptr) part_at<arctrace_frame_body>(record.body).key = key;
  thread_local_state.frame_disturbed = nesting.nested();
  store(state);
  commit_change(nesting, state, record, at + 1, [&] {
    if (__builtin_expect(thread_local_state.frame_disturbed, 0)) store(state);
    if (!nesting.nested()) thread_local_state.frame_disturbed = false;
  });
}

// Calls use(nesting, state, record) with a record begun that has `body_size` bytes after
// its head, if the fast path is open and fits(state); `here` is the address for the
// writer call. False: nothing was done. Nothing is called on the way, and what is needed
// later is kept in few variables, so that the compiler saves no registers.
template <class Fits, class Use>
__attribute__((always_inline)) inline bool record_fast(uintptr_t here, uint16_t type,
                                                       uint32_t body_size,
                                                       const Fits& fits, const Use& use) {
  if (__builtin_expect(
          is_inside_writer() || IpcAtomics::load_relaxed(session.fast_path_open) == 0,
          0)) {
    return false;
  }
  OutermostCall writer_call(here);
  ThreadState* state = thread_local_state.state;
  if (__builtin_expect(state == nullptr, 0)) return writer_call.refuse();
  const uint32_t length = ARCTRACE_COMPACT_HEAD_SIZE + body_size;
  std::byte* begin;
  if (__builtin_expect(!find_room(*state, length, begin) || !fits(*state), 0)) {
    return writer_call.refuse();
  }
  const uint64_t from_base = ticks_from_base(*state, read_counter());
  if (__builtin_expect(from_base > UINT32_MAX, 0)) return writer_call.refuse();
  if (begin == nullptr) __builtin_unreachable();  // it has room
  const Reservation record = begin_compact(*state, begin, type, length, from_base);
  count_written(*state);
  use(writer_call, *state, record);
  return true;
}

// Records that the thread entered `key` in `frame`, if fits(); with_frame() is called as
// the frame is added. False: nothing was done.
template <class Fits, class WithFrame>
__attribute__((always_inline)) inline bool enter_fast(uint64_t key,
                                                      const MachineFrame& frame,
                                                      uintptr_t here, const Fits& fits,
                                                      const WithFrame& with_frame) {
  uint32_t at = 0;
  uint32_t parent = 0;
  return record_fast(
      here, ARCTRACE_TYPE_ENTER, sizeof(arctrace_frame_body),
      [&](const ThreadState& state) {
        at = state.open.depth;
        if (at >= OpenFrames::kMax) return false;
        parent = state.open.parent_fingerprint(at);
        return (frame.location == 0 ||
                state.open.surely_has_innermost(thread_local_state.stacks, frame)) &&
               fits();
      },
      [&](Nesting nesting, ThreadState& state, const Reservation& record) {
        with_frame();
        complete_enter(nesting, state, record, key, at,
                       [&](ThreadState& to) { to.open.store(at, key, frame, parent); });
      });
}

__attribute__((always_inline)) inline bool enter_fast(uint64_t key,
                                                      const MachineFrame& frame,
                                                      uintptr_t here) {
  return enter_fast(
      key, frame, here, [] { return true; }, [] {});
}

// Records that the thread left its innermost frame, if that belongs to `key` and
// is_left(frame) says that it is the one; after() is called when it is left. False:
// nothing was done.
template <class IsLeft, class After>
__attribute__((always_inline)) inline bool exit_fast(uint64_t key, uintptr_t here,
                                                     const IsLeft& is_left,
                                                     const After& after) {
  uint32_t left = 0;  // index of the frame
  return record_fast(
      here, ARCTRACE_TYPE_EXIT, 0,
      [&](const ThreadState& state) {
        left = state.open.depth - 1;
        const OpenFrame* innermost = state.open.innermost(key);
        return innermost != nullptr && is_left(innermost->frame);
      },
      [&](Nesting nesting, ThreadState& state, const Reservation& record) {
        commit_change(nesting, state, record, left, [] {});
        after();
      });
}

template <class IsLeft>
__attribute__((always_inline)) inline bool exit_fast(uint64_t key, uintptr_t here,
                                                     const IsLeft& is_left) {
  return exit_fast(key, here, is_left, [] {});
}

}  // namespace arctrace
