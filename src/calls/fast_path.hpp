// The fast path of nearly every entry and exit: a thread's outermost writer call, with
// room in the thread's block, over no frame that was jumped out of, and without a filter.
// It is inlined into its callers and tests each of these conditions once. Everything else
// takes the slow path from its beginning (call_records.hpp).
#pragma once

#include <cstdint>

#include "src/base/inlined.hpp"
#include "src/stack/left_frames.hpp"
#include "src/stack/machine_frame.hpp"
#include "src/writer/fast_record.hpp"
#include "src/writer/stack_change.hpp"

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
  commit_enter(nesting, state, record, at, store);
}

// Records that the thread entered `key` in `frame`, if fits(state, depth), where depth is
// that of the thread's open frames; with_frame() is called as the frame is added. False:
// nothing was done.
template <class Room, class Fits, class WithFrame>
__attribute__((always_inline)) inline bool enter_fast(uint64_t key,
                                                      const MachineFrame& frame,
                                                      uintptr_t here, const Fits& fits,
                                                      const WithFrame& with_frame) {
  uint32_t at = 0;
  return record_fast<Room>(
      here, ARCTRACE_TYPE_ENTER, sizeof(arctrace_frame_body),
      [&](const ThreadState& state) ARCTRACE_INLINED {
        at = state.open.depth;
        return at < OpenFrames::kMax && fits(state, at);
      },
      [&](Nesting nesting, ThreadState& state, const Reservation& record)
          ARCTRACE_INLINED {
            with_frame();
            complete_enter(nesting, state, record, key, at,
                           [&](ThreadState& to)
                               ARCTRACE_INLINED { to.open.store(at, key, frame); });
          });
}

template <class Room>
__attribute__((always_inline)) inline bool enter_fast(uint64_t key,
                                                      const MachineFrame& frame,
                                                      uintptr_t here) {
  return enter_fast<Room>(
      key, frame, here,
      [&](const ThreadState& state, uint32_t depth) ARCTRACE_INLINED {
        return frame.location == 0 || is_known_call(thread_local_state.stacks, state.open,
                                                    state.edges, depth, frame);
      },
      []() ARCTRACE_INLINED {});
}

// The call of a hook that the compiler put at the beginning of a function.
struct HookCall {
  uintptr_t call_site;
  uintptr_t stack_pointer;
  uintptr_t frame_pointer;
  uintptr_t hook_site;
};

// Records that the thread entered `key`, if the call is known to come from its innermost
// frame. False: nothing was done. REQUIRES: fast_path_is_open(), and there is no live
// filter.
template <class Room>
__attribute__((always_inline)) inline bool enter_hooked_fast(uint64_t key,
                                                             const HookCall& call) {
  uint32_t at = 0;
  MachineFrame frame;
  frame.stack_pointer = low_half(call.stack_pointer);
  frame.call_site = low_half(call.call_site);
  frame.hook_site = low_half(call.hook_site);
  return record_fast<Room>(
      call.stack_pointer, ARCTRACE_TYPE_ENTER, sizeof(arctrace_frame_body),
      [&](const ThreadState& state) ARCTRACE_INLINED {
        at = state.open.depth;
        if (at - 1 >= OpenFrames::kMax - 1) return false;
        return state.edges.locate(state.open.frames[at - 1].frame, call.stack_pointer,
                                  call.frame_pointer, frame);
      },
      [&](Nesting nesting, ThreadState& state, const Reservation& record)
          ARCTRACE_INLINED {
            complete_enter(nesting, state, record, key, at,
                           [&](ThreadState& to)
                               ARCTRACE_INLINED { to.open.store(at, key, frame); });
          });
}

// Records that the thread left its innermost frame, if that belongs to `key` and
// is_left(frame) says that it is the one; after() is called when it is left. False:
// nothing was done.
template <class Room, class IsLeft, class After>
__attribute__((always_inline)) inline bool exit_fast(uint64_t key, uintptr_t here,
                                                     const IsLeft& is_left,
                                                     const After& after) {
  uint32_t left = 0;  // index of the frame
  return record_fast<Room>(
      here, ARCTRACE_TYPE_EXIT, 0,
      [&](const ThreadState& state) ARCTRACE_INLINED {
        left = state.open.depth - 1;
        const OpenFrame* innermost = state.open.innermost(key);
        return innermost != nullptr && is_left(innermost->frame);
      },
      [&](Nesting nesting, ThreadState& state, const Reservation& record)
          ARCTRACE_INLINED {
            commit_leave(nesting, state, record, left);
            after();
          });
}

template <class Room, class IsLeft>
__attribute__((always_inline)) inline bool exit_fast(uint64_t key, uintptr_t here,
                                                     const IsLeft& is_left) {
  return exit_fast<Room>(key, here, is_left, [] {});
}

}  // namespace arctrace
