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

// What the record of an entry has after the key: nothing.
struct NoLocks {
  static constexpr uint32_t size() { return 0; }
  static void store(std::byte* /*to*/) {}
};

// Writes the entry of `key` and adds its frame, which store(open) keeps in `slot`.
template <class Store, class Locks = NoLocks>
__attribute__((always_inline)) inline void complete_enter(
    Nesting nesting, ThreadState& state, const Reservation& record, uint64_t key,
    FrameSlot slot, const Store& store, const Locks& locks = {}) {
  if (record.word0 != nullptr) {
    part_at<arctrace_frame_body>(record.body).key = key;
    locks.store(record.body + sizeof(arctrace_frame_body));
  }
  commit_enter(nesting, state, record, slot, store);
}

// Records that the thread entered `key` in `frame`, if fits(state, caller), where caller
// is the thread's innermost open frame (null: there is none); make_frame(), which is
// called once the record is begun, returns the frame. False: nothing was done.
template <class Room, class Here, class Fits, class MakeFrame, class Locks = NoLocks>
__attribute__((always_inline)) inline bool enter_fast(const Room& room, uint64_t key,
                                                      Here here, const Fits& fits,
                                                      const MakeFrame& make_frame,
                                                      const Locks& locks = {}) {
  FrameSlot slot{};
  return room.record(
      here, ARCTRACE_TYPE_ENTER,
      static_cast<uint32_t>(sizeof(arctrace_frame_body)) + locks.size(),
      [&](ThreadState& state) ARCTRACE_INLINED {
        slot.at = state.open.depth;
        if (slot.at.offset() >= FrameCount(OpenFrames::kMax).offset()) return false;
        slot.to = kept_pointer(state.open.frame_at(slot.at));
        return fits(state, slot.at.offset() == 0 ? nullptr : slot.to - 1);
      },
      [&](Nesting nesting, ThreadState& state,
          const Reservation& record) ARCTRACE_INLINED {
        if (slot.to == nullptr) __builtin_unreachable();
        const MachineFrame frame = make_frame();
        complete_enter(
            nesting, state, record, key, slot,
            [&](ThreadState&) ARCTRACE_INLINED { slot.to->store(key, frame); }, locks);
      });
}

template <class Room, class Here>
__attribute__((always_inline)) inline bool enter_fast(const Room& room, uint64_t key,
                                                      const MachineFrame& frame,
                                                      Here here) {
  return enter_fast(
      room, key, here,
      [&](const ThreadState& state, const OpenFrame* caller) ARCTRACE_INLINED {
        if (frame.location == 0) return true;
        if (caller == nullptr) return is_known_stack(state.followed, frame.location);
        return is_known_call(thread_local_state.stacks, state.edges, *caller, frame);
      },
      [&]() ARCTRACE_INLINED { return frame; });
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
__attribute__((always_inline)) inline bool enter_hooked_fast(const Room& room,
                                                             uint64_t key,
                                                             const HookCall& call) {
  FrameSlot slot{};
  const CallEdges::Edge* edge = nullptr;
  MachineFrame frame;
  frame.stack_pointer = low_half(call.stack_pointer);
  frame.call_site = low_half(call.call_site);
  frame.hook_site = low_half(call.hook_site);
  return room.record(
      call.stack_pointer, ARCTRACE_TYPE_ENTER, sizeof(arctrace_frame_body),
      [&](ThreadState& state) ARCTRACE_INLINED {
        slot.at = state.open.depth;
        if (slot.at.previous().offset() >= FrameCount(OpenFrames::kMax - 1).offset()) {
          return false;
        }
        slot.to = kept_pointer(state.open.frame_at(slot.at));
        edge = state.edges.edge_of((slot.to - 1)->frame, call.stack_pointer,
                                   call.frame_pointer, frame);
        return edge != nullptr;
      },
      [&](Nesting nesting, ThreadState& state, const Reservation& record)
          ARCTRACE_INLINED {
            if (slot.to == nullptr || edge == nullptr) __builtin_unreachable();
            CallEdges::locate(*edge, (slot.to - 1)->frame, frame);
            if (frame.location == 0) __builtin_unreachable();  // it is on a stack
            complete_enter(nesting, state, record, key, slot,
                           [&](ThreadState&)
                               ARCTRACE_INLINED { slot.to->store(key, frame); });
          });
}

// Records that the thread left its innermost frame, if that belongs to `key` and
// is_left(frame) says that it is the one; after() is called when it is left. False:
// nothing was done.
template <class Room, class Here, class IsLeft, class After>
__attribute__((always_inline)) inline bool exit_fast(const Room& room, uint64_t key,
                                                     Here here, const IsLeft& is_left,
                                                     const After& after) {
  FrameCount left;  // index of the frame
  return room.record(
      here, ARCTRACE_TYPE_EXIT, 0,
      [&](const ThreadState& state) ARCTRACE_INLINED {
        left = state.open.depth.previous();
        const OpenFrame* innermost = state.open.innermost(key);
        return innermost != nullptr && is_left(innermost->frame);
      },
      [&](Nesting nesting, ThreadState& state, const Reservation& record)
          ARCTRACE_INLINED {
            commit_leave(nesting, state, record, left);
            after();
          });
}

template <class Room, class Here, class IsLeft>
__attribute__((always_inline)) inline bool exit_fast(const Room& room, uint64_t key,
                                                     Here here, const IsLeft& is_left) {
  return exit_fast(room, key, here, is_left, [] {});
}

}  // namespace arctrace
