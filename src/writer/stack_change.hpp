// Commits a record that changes which frames are open. Record and frames change as one
// step, also for a signal handler that comes in between, and for later calls if that
// handler jumps away.
#pragma once

#include <atomic>

#include "src/base/inlined.hpp"
#include "src/writer/commit.hpp"
#include "src/writer/interrupted_change.hpp"
#include "src/writer/writer_call.hpp"

namespace arctrace {

// To be called after a change of the open frames whose record was lost. The thread's next
// record comes after a STACK, and until then nested calls lose theirs: no reader could
// tell which frames these are about.
__attribute__((noinline)) void note_lost_change(Nesting nesting, ThreadState& state);

// Announces the change, calls make(), and ends the change.
template <class Make>
__attribute__((always_inline)) inline void as_announced(Nesting nesting,
                                                        const StackChange& change,
                                                        const Make& make) {
  ThreadLocal& local = thread_local_state;
  StackChange interrupted{};
  if (__builtin_expect(nesting.nested(), 0)) {
    interrupted = local.change;
    finish_change(local);
  }
  announce(local, change);
  make();
  finish_change(local);
  if (__builtin_expect(nesting.nested(), 0)) announce(local, interrupted);
}

// Commits `record`, which leaves only the outermost `depth` frames open.
__attribute__((always_inline)) inline void commit_leave(Nesting nesting,
                                                        ThreadState& state,
                                                        const Reservation& record,
                                                        FrameCount depth) {
  if (record.word0 == nullptr) {
    state.open.depth = depth;
    note_lost_change(nesting, state);
    return;
  }
  as_announced(nesting, {record.word0, depth}, [&]() ARCTRACE_INLINED {
    commit(record);
    std::atomic_signal_fence(std::memory_order_seq_cst);
    state.open.depth = depth;
  });
}

// A frame to be added: its index, and where it is kept (null: it is only counted).
struct FrameSlot {
  FrameCount at;
  OpenFrame* to;
};

// Counts a frame, which store() stores. Counted first: so handlers leave it alone. Until
// it is stored, its location is not known.
template <class Store>
__attribute__((always_inline)) inline void add_frame(ThreadState& state, FrameSlot slot,
                                                     const Store& store) {
  if (slot.to != nullptr) slot.to->frame.location = 0;
  std::atomic_signal_fence(std::memory_order_seq_cst);
  state.open.depth = slot.at.next();
  std::atomic_signal_fence(std::memory_order_seq_cst);
  store(state);
  std::atomic_signal_fence(std::memory_order_seq_cst);
}

// Adds a frame of which there is no record.
template <class Store>
__attribute__((always_inline)) inline void add_unrecorded_frame(Nesting nesting,
                                                                ThreadState& state,
                                                                FrameSlot slot,
                                                                const Store& store) {
  as_announced(nesting, unrecorded_enter(slot.at.next()),
               [&] { add_frame(state, slot, store); });
}

// Commits `record`, the entry of a frame. The frame is stored before that: if a handler
// jumps out of here, either both count or abandon_change() takes the frame back.
template <class Store>
__attribute__((always_inline)) inline void commit_enter(Nesting nesting,
                                                        ThreadState& state,
                                                        const Reservation& record,
                                                        FrameSlot slot,
                                                        const Store& store) {
  if (__builtin_expect(record.word0 == nullptr, 0)) {
    add_unrecorded_frame(nesting, state, slot, store);
    note_lost_change(nesting, state);
    return;
  }
  as_announced(nesting, {record.word0, slot.at.next()}, [&]() ARCTRACE_INLINED {
    add_frame(state, slot, store);
    commit(record);
    std::atomic_signal_fence(std::memory_order_seq_cst);
  });
}

}  // namespace arctrace
