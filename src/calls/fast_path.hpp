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

// Writes the entry of `key` and adds its frame, which store(state) keeps in `slot`.
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

// Records that the thread entered `key`, if fits(state, to), where `to` is for the new
// frame, and follows its caller's, or `outside`; store(to, key) stores the frame there,
// its location last. False: nothing was done. Key: uint64_t, or what is converted to it
// when the key is needed.
template <class Room, class Key, class Here, class Fits, class Store,
          class Locks = NoLocks>
__attribute__((always_inline)) inline bool enter_fast(const Room& room, const Key& key,
                                                      Here here, const Fits& fits,
                                                      const Store& store,
                                                      const Locks& locks = {}) {
  OpenFrame* to = nullptr;
  return room.record(
      here, ARCTRACE_TYPE_ENTER,
      static_cast<uint32_t>(sizeof(arctrace_frame_body)) + locks.size(),
      [&](ThreadState& state) ARCTRACE_INLINED {
        const FrameCount at = state.open.depth;
        if (at.offset() >= FrameCount(OpenFrames::kMax).offset()) return false;
        to = kept_pointer(state.open.frame_at(at));
        return fits(state, to);
      },
      [&](Nesting nesting, ThreadState& state, const Reservation& record)
          ARCTRACE_INLINED {
            if (to == nullptr) __builtin_unreachable();
            const uint64_t its_key = key;
            // Read once more, so that it need not be kept until here.
            complete_enter(
                nesting, state, record, its_key, {state.open.depth_anew(), to},
                [&](ThreadState&) ARCTRACE_INLINED { store(*to, its_key); }, locks);
          });
}

// The same for a frame that frame() makes anew whenever it is asked for, so that none of
// its parts is kept in between.
template <class Room, class Here, class Frame>
__attribute__((always_inline)) inline bool enter_framed_fast(const Room& room,
                                                             uint64_t key,
                                                             const Frame& frame,
                                                             Here here) {
  return enter_fast(
      room, key, here,
      [&](const ThreadState& state, const OpenFrame* to) ARCTRACE_INLINED {
        const MachineFrame now = frame();
        if (now.location == 0) return true;
        if (to == state.open.frames) return is_known_stack(state.followed, now.location);
        return is_known_call(thread_local_state.stacks, thread_local_state.edges,
                             *(to - 1), now);
      },
      [&](OpenFrame& to, uint64_t its_key)
          ARCTRACE_INLINED { to.store(its_key, frame()); });
}

// Records that the thread entered `key` by a call of the hook that the compiler put at
// the beginning of a function, if the call is known to come from the innermost frame.
// `call` says what arctrace_shim_function_hook() passes, each when it is asked. False:
// nothing was done. REQUIRES: fast_path_is_open(), and there is no live filter.
template <class Room, class Call, class Here>
__attribute__((always_inline)) inline bool enter_hooked_fast(const Room& room,
                                                             uint64_t key,
                                                             const Call& call,
                                                             Here here) {
  const CallEdges::Edge* edge = nullptr;
  return enter_fast(
      room, key, here,
      [&](const ThreadState& /*state*/, const OpenFrame* to) ARCTRACE_INLINED {
        edge = thread_local_state.edges.edge_of((to - 1)->frame, call);
        return edge != nullptr;
      },
      [&](OpenFrame& to, uint64_t its_key) ARCTRACE_INLINED {
        if (edge == nullptr) __builtin_unreachable();
        to.key = its_key;
        CallEdges::store_callee(*edge, (&to - 1)->frame, call.stack_pointer(), to.frame);
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
        left = state.open.depth.previous().beside_arguments();
        const OpenFrame* innermost = state.open.kept_frame_at(left);
        return innermost != nullptr && innermost->key == key && is_left(innermost->frame);
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
