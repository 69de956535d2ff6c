// The fast path of nearly every entry and exit: a thread's outermost writer call, with
// space in the thread's block, without abandoned frames, and without a filter. It is
// inlined into its callers and tests each of these conditions once. Everything else takes
// the slow path from its beginning (call_records.hpp).
//
// From below to above: entries and exits of any hook; a call that goes through one of the
// shim's stubs, and whether it is known who makes it; the beginning and end of such a
// call.
#pragma once

#include <arctrace/format.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "src/base/memory.hpp"
#include "src/hook_abi/shim_types.h"
#include "src/process/gate.hpp"
#include "src/stack/abandoned_frames.hpp"
#include "src/stack/call_edges.hpp"
#include "src/stack/open_calls.hpp"
#include "src/writer/record.hpp"
#include "src/writer/thread_state.hpp"

namespace arctrace::writer {

// The record of an entry has nothing after the key.
struct NoLocks {
  static constexpr uint32_t size() { return 0; }
  static void store(std::byte* /*to*/) {}
};

// The record of an entry has the locks of a stub's call after the key: the call's first
// arguments.
template <uint32_t kCount>
struct CallLocks {
  uintptr_t addresses[kCount];

  static constexpr uint32_t size() { return kCount * sizeof(arctrace_lock_word); }
  __attribute__((always_inline)) void store(std::byte* to) const {
    for (uint32_t i = 0; i < kCount; ++i) {
      part_at<arctrace_lock_word>(to + i * sizeof(arctrace_lock_word)).address =
          addresses[i];
    }
  }
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
// its `cfa` last. False: nothing was done. Key: uint64_t, or what is converted to it
// when the key is needed.
template <class Block, class Key, class Here, class Fits, class Store,
          class Locks = NoLocks>
__attribute__((always_inline)) inline bool enter_fast(const Block& block, const Key& key,
                                                      Here here, const Fits& fits,
                                                      const Store& store,
                                                      const Locks& locks = {}) {
  OpenFrame* to = nullptr;
  return block.record(
      here, ARCTRACE_TYPE_ENTER,
      static_cast<uint32_t>(sizeof(arctrace_frame_body)) + locks.size(),
      [&](ThreadState& state) ARCTRACE_INLINED {
        const FrameCount at = state.open.depth;
        if (at.offset() >= FrameCount(OpenFrames::kMax).offset()) return false;
        to = pointer_in_register(state.open.frame_at(at));
        return fits(state, to);
      },
      [&](Nesting nesting, ThreadState& state, const Reservation& record)
          ARCTRACE_INLINED {
            if (to == nullptr) __builtin_unreachable();
            const uint64_t its_key = key;
            // The depth is read once more, so that it need not be kept until here.
            complete_enter(
                nesting, state, record, its_key, {state.open.depth_anew(), to},
                [&](ThreadState&) ARCTRACE_INLINED { store(*to, its_key); }, locks);
          });
}

// Whether it is known who calls the function whose frame `now` will be at `to`, or its
// CFA is not known.
__attribute__((always_inline)) inline bool is_known_frame(const ThreadState& state,
                                                          const OpenFrame* to,
                                                          const MachineFrame& now) {
  if (now.cfa == 0) return true;
  if (to == state.open.frames) return is_known_stack(state.current_stack, now.cfa);
  return is_known_call(thread_local_state.stacks, thread_local_state.edges, *(to - 1),
                       now);
}

// As enter_fast(), for a frame that frame() makes anew whenever it is asked for, so that
// none of its parts is kept in between.
template <class Block, class Here, class Frame>
__attribute__((always_inline)) inline bool enter_framed_fast(const Block& block,
                                                             uint64_t key,
                                                             const Frame& frame,
                                                             Here here) {
  return enter_fast(
      block, key, here,
      [&](const ThreadState& state, const OpenFrame* to)
          ARCTRACE_INLINED { return is_known_frame(state, to, frame()); },
      [&](OpenFrame& to, uint64_t its_key)
          ARCTRACE_INLINED { to.store(its_key, frame()); });
}

// Records that the thread entered `key` by a call of the hook that the compiler put at
// the beginning of a function, if the call is known to come from the innermost frame.
// `call` computes the arguments of arctrace_shim_function_hook(), each when it is asked.
// False: nothing was done. REQUIRES: fast_path_is_open(), and there is no live filter.
template <class Block, class Call, class Here>
__attribute__((always_inline)) inline bool enter_instrumented_fast(const Block& block,
                                                                   uint64_t key,
                                                                   const Call& call,
                                                                   Here here) {
  const CallEdges::Edge* edge = nullptr;
  return enter_fast(
      block, key, here,
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
// is_exited(frame) says that it is the one; after() is called when it is left. False:
// nothing was done.
template <class Block, class Here, class IsExited, class After>
__attribute__((always_inline)) inline bool exit_fast(const Block& block, uint64_t key,
                                                     Here here, const IsExited& is_exited,
                                                     const After& after) {
  FrameCount exited;  // index of the frame
  return block.record(
      here, ARCTRACE_TYPE_EXIT, 0,
      [&](const ThreadState& state) ARCTRACE_INLINED {
        exited = state.open.depth.previous().beside_arguments();
        const OpenFrame* innermost = state.open.stored_frame_at(exited);
        return innermost != nullptr && innermost->key == key &&
               is_exited(innermost->frame);
      },
      [&](Nesting nesting, ThreadState& state, const Reservation& record)
          ARCTRACE_INLINED {
            commit_leave(nesting, state, record, exited);
            after();
          });
}

template <class Block, class Here, class IsExited>
__attribute__((always_inline)) inline bool exit_fast(const Block& block, uint64_t key,
                                                     Here here,
                                                     const IsExited& is_exited) {
  return exit_fast(block, key, here, is_exited, [] {});
}

// A call that one of the shim's stubs makes on behalf of the program.
struct StubCall {
  const uintptr_t* return_slot;  // where its return address stands
  uintptr_t frame_pointer;
  uint32_t flags;  // enum arctrace_shim_call_flags

  // The machine frame that the called function is about to make.
  arctrace_shim_call described() const {
    return {here() + sizeof(uintptr_t), here(),       frame_pointer,
            site(*return_slot),         *return_slot, frame_flags()};
  }
  // The same machine frame, as the fast path needs it. It is set member by member, and
  // not const, because only then gcc keeps it in registers.
  MachineFrame frame(uintptr_t return_address) const {
    MachineFrame made;
    made.cfa = here() + sizeof(uintptr_t);
    if (made.cfa == 0) __builtin_unreachable();
    made.stack_pointer = low_half(here());
    made.call_site = low_half(return_address);
    made.hook_site = low_half(site(return_address));
    made.flags = frame_flags();
    return made;
  }
  // The site by which the call is known (CallEdges::has_stub_call()). A call that returns
  // to a stub is another call than one from there.
  uintptr_t site(uintptr_t return_address) const {
    const bool returns_to_stub = (flags & ARCTRACE_SHIM_RETURNS_TO_SHIM) != 0;
    return returns_to_stub ? return_address + 1 : return_address;
  }
  uint32_t frame_flags() const {
    return flags | ARCTRACE_SHIM_BEGINS_FRAME | ARCTRACE_SHIM_LIBRARY_CALL;
  }
  uintptr_t here() const { return reinterpret_cast<uintptr_t>(return_slot); }
};

// The key of the call whose address is there, read when it is needed, so that no register
// is kept for it.
struct EnteredKey {
  const volatile uintptr_t* word;

  // NOLINTNEXTLINE(google-explicit-constructor)
  __attribute__((always_inline)) operator uint64_t() const {
    const auto& call = *reinterpret_cast<const arctrace_shim_stub_call*>(*word);
    return __atomic_load_n(&call.key, __ATOMIC_RELAXED);
  }
};

// Whether nothing needs to be known of a stub's call, because the thread has no open
// frame. A call that returns to a stub ends together with another call.
__attribute__((always_inline)) inline bool is_known_first_stub_call(
    const ThreadState& state, const StubCall& call, uintptr_t return_address) {
  return is_known_stack(state.current_stack, call.here()) &&
         !is_stub_return(return_address);
}

// Whether a stub's call, whose frame will be at `to`, is known to come from the frame
// before that.
__attribute__((always_inline)) inline bool is_known_inner_stub_call(
    const OpenFrame* to, const StubCall& call, uintptr_t return_address) {
  return thread_local_state.edges.has_stub_call((to - 1)->frame, call.here(),
                                                call.frame(return_address));
}

// Whether is_known_first_stub_call() or is_known_inner_stub_call() holds, for the
// innermost open frame.
__attribute__((always_inline)) inline bool is_known_stub_call(const ThreadState& state,
                                                              const OpenFrame* to,
                                                              const StubCall& call,
                                                              uintptr_t return_address) {
  return state.open.depth.offset() == 0
             ? is_known_first_stub_call(state, call, return_address)
             : is_known_inner_stub_call(to, call, return_address);
}

// As is_known_stub_call(), for a caller that was found open, whose calls that function
// does not know. It compares what the slow path compares.
inline bool is_known_stub_call_in_found(const ThreadState& state, const OpenFrame* to,
                                        const StubCall& call, uintptr_t return_address) {
  return state.open.depth.offset() != 0 && (to - 1)->frame.has(ARCTRACE_SHIM_WAS_OPEN) &&
         is_known_call_in_found(thread_local_state.stacks, state.open,
                                thread_local_state.edges, *(to - 1),
                                call.frame(return_address));
}

// Each call that a stub makes on behalf of the program is a frame, and is pending until
// it returns to the shim. call_began() and call_ended() try the fast path inline, hand
// over to their _in_chain form where the thread has no space in a block of its own, and
// call their _slow form otherwise.

// Records the entry of a call. Returns nonzero if the stub is to call the function and
// then call_ended(), which must not be called if this returned 0.
__attribute__((noinline)) int call_began_slow(uint64_t key, const uintptr_t* return_slot,
                                              uintptr_t frame_pointer, uint32_t flags);

// Records the exit of the call whose return address was taken from `return_slot`, and
// puts the return address back there. `retval` is the integer register of the return
// value.
__attribute__((noinline)) void call_ended_slow(uintptr_t* return_slot, uintptr_t retval);

// Ends the innermost of the thread's pending calls, which has returned: puts its return
// address back into its slot.
inline void end_innermost_call(PendingCalls& calls, const PendingCall& call,
                               uintptr_t* return_slot) {
  *return_slot = call.return_address;
  std::atomic_signal_fence(std::memory_order_seq_cst);
  calls.drop_top();
}

// Begins a call in the usual way: with its own frame, and inside the innermost pending
// call. False: nothing was done. REQUIRES: fast_path_is_open(). Key: as for enter_fast().
// IsKnown: whether it is known who makes the call.
template <class Block, class Key, class Locks = NoLocks,
          class IsKnown = decltype(&is_known_stub_call)>
__attribute__((always_inline)) inline bool call_began_fast(
    const Block& block, const Key& key, const StubCall& call, const Locks& locks = {},
    const IsKnown& is_known = &is_known_stub_call) {
  if ((call.flags & ARCTRACE_SHIM_RETURNS_TO_SHIM) != 0) return false;
  const uintptr_t return_address = *call.return_slot;
  return enter_fast(
      block, key, call.here(),
      [&](const ThreadState& state, const OpenFrame* frame_to) ARCTRACE_INLINED {
        if (!is_known(state, frame_to, call, return_address)) return false;
        PendingCalls* calls = thread_local_state.calls;
        if (calls == nullptr) __builtin_unreachable();  // come with a state
        return calls->has_space_inside(thread_local_state.stacks, call.here());
      },
      [&](OpenFrame& frame_to, uint64_t its_key) ARCTRACE_INLINED {
        // These are read once more, so that they need not be kept until here.
        PendingCalls* calls = thread_local_state.calls;
        if (calls == nullptr) __builtin_unreachable();
        const uintptr_t address = read_anew(*call.return_slot);
        calls->add({call.here(), address, its_key});
        frame_to.store(its_key, call.frame(address));
      },
      locks);
}

// A return slot whose address is in a register.
struct KnownReturnSlot {
  uintptr_t* slot;

  __attribute__((always_inline)) uintptr_t* compared() const { return slot; }
  __attribute__((always_inline)) uintptr_t* stored() const { return slot; }
};

// Ends a call in the usual way. ReturnSlot: as above. False: nothing was done. REQUIRES:
// fast_path_is_open().
template <class Block, class Here, class ReturnSlot>
__attribute__((always_inline)) inline bool call_ended_fast(
    const Block& block, Here here, const ReturnSlot& return_slot) {
  const PendingCall* top = nullptr;
  FrameCount exited;  // index of the frame
  return block.record(
      here, ARCTRACE_TYPE_EXIT, 0,
      [&](const ThreadState& state) ARCTRACE_INLINED {
        PendingCalls* own = thread_local_state.calls;
        if (own == nullptr) __builtin_unreachable();  // come with a state
        const uintptr_t* slot = return_slot.compared();
        top = own->top_at(reinterpret_cast<uintptr_t>(slot));
        if (top == nullptr) return false;
        // A call's key is no frame's, so that it takes the slow path, if the call has
        // arguments, if nothing is recorded of it, or if it ends together with the one
        // around it. The key is compared last, because that takes a register.
        exited = state.open.depth.previous();
        const OpenFrame* innermost = state.open.stored_frame_at(exited);
        return innermost != nullptr &&
               is_equal(innermost->frame.stack_pointer,
                        low_half(reinterpret_cast<uintptr_t>(slot))) &&
               __builtin_expect(innermost->key == top->key, 1);
      },
      [&](Nesting nesting, ThreadState& state, const Reservation& record)
          ARCTRACE_INLINED {
            commit_leave(nesting, state, record, exited);
            // The calls are read once more, so that they need not be kept until here.
            PendingCalls* own = thread_local_state.calls;
            if (own == nullptr || top == nullptr) __builtin_unreachable();
            end_innermost_call(*own, *top, return_slot.stored());
          });
}

// As the function above, with the return slot as the address for the writer call.
template <class Block>
__attribute__((always_inline)) inline bool call_ended_fast(const Block& block,
                                                           uintptr_t* return_slot) {
  return call_ended_fast(block, reinterpret_cast<uintptr_t>(return_slot),
                         KnownReturnSlot{return_slot});
}

// Begins a call in the shared chain, for an OwnBlock. False: nothing was done.
__attribute__((noinline)) bool call_began_in_chain(uint64_t key,
                                                   const uintptr_t* return_slot,
                                                   uintptr_t frame_pointer,
                                                   uint32_t flags, ThreadState& state);

// Ends a call, in the shared chain or otherwise, for an OwnBlock.
__attribute__((noinline)) void call_ended_in_chain(uintptr_t* return_slot,
                                                   uintptr_t retval, ThreadState& state);

// Begins a call in the thread's own block or in the shared chain. False: nothing was
// done.
__attribute__((always_inline)) inline bool call_began_anywhere(
    const volatile FastGate& gate, uint64_t key, const StubCall& call) {
  const OwnBlock block{[&](ThreadState& state) ARCTRACE_INLINED {
    return call_began_in_chain(key, call.return_slot, call.frame_pointer, call.flags,
                               state);
  }};
  return fast_path_is_open<ARCTRACE_GATE_FUNCTIONS>(gate) &&
         call_began_fast(block, key, call);
}

__attribute__((always_inline)) inline int call_began(uint64_t key,
                                                     const uintptr_t* return_slot,
                                                     uintptr_t frame_pointer,
                                                     uint32_t flags) {
  if (__builtin_expect(call_began_anywhere(current_fast_gate(), key,
                                           {return_slot, frame_pointer, flags}),
                       1)) {
    return 1;
  }
  return call_began_slow(key, return_slot, frame_pointer, flags);
}

__attribute__((always_inline)) inline void call_ended(uintptr_t* return_slot,
                                                      uintptr_t retval) {
  const OwnBlock block{[&](ThreadState& state) ARCTRACE_INLINED {
    call_ended_in_chain(return_slot, retval, state);
    return true;
  }};
  if (__builtin_expect(fast_path_is_open<ARCTRACE_GATE_FUNCTIONS>() &&
                           call_ended_fast(block, return_slot),
                       1)) {
    return;
  }
  call_ended_slow(return_slot, retval);
}

}  // namespace arctrace::writer
