// The path of a record: space is reserved for it, its body is filled in, and it is
// committed. From below to above: the reservation in the thread's exclusive block, the
// commit; with_record(), which serves every writer call; OwnBlock, the fast path; and
// records that change which frames are open.
#pragma once

#include <arctrace/format.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "src/base/memory.hpp"
#include "src/base/shared_atomics.hpp"
#include "src/buffer/clock.hpp"
#include "src/process/gate.hpp"
#include "src/process/session.hpp"
#include "src/protocol/shared_chain.hpp"
#include "src/writer/thread_state.hpp"
#include "src/writer/writer_call.hpp"

namespace arctrace::writer {

// Clears a name of the calling thread's slot: the block may be recycled from then on. A
// fork child, which may go on with a call of its parent, does not change its parent's
// name.
inline void release_active(uint32_t* active) {
  if (thread_local_state.state->slot.is_wiped()) return;
  SharedChain<IpcAtomics>::release(*active);
}

// Space for one record.
struct Reservation {
  std::byte* word0;  // null: nothing is reserved, and the loss is counted
  std::byte* body;
  uint32_t committed;  // word 0 of the complete record
  uint32_t block;      // index
  // In a shared block: the slot's word that names it until release(). Null: not shared.
  uint32_t* active;
  // The state whose slot's first such word names the block; the word is found when it is
  // needed. Null: as `active` says.
  ThreadState* outermost_of;
};

inline constexpr Reservation kNoReservation{nullptr, nullptr, 0, 0, nullptr, nullptr};

// Clears the block's name. To be called after the commit, or once the record is reserved
// in place.
__attribute__((always_inline)) inline void release(const Reservation& record) {
  if (record.outermost_of != nullptr) {
    SharedChain<IpcAtomics>::release(record.outermost_of->slot.slot().active[0]);
  } else if (__builtin_expect(record.active != nullptr, 0)) {
    release_active(record.active);
  }
}

// The head or body at `to`, as its struct of arctrace/format/.
template <class Part>
inline Part& part_at(std::byte* to) {
  static_assert(alignof(Part) == 4);
  return *reinterpret_cast<Part*>(to);
}

// Finds where a record of `length` bytes begins in the thread's exclusive block.
// False: the block has no space. The position is read once, and before anything else of
// the state: a handler may fork, and its child, whose state is wiped, goes on here with
// the parent's record.
__attribute__((always_inline)) inline bool find_space(const ThreadState& state,
                                                      uint32_t length,
                                                      std::byte*& begin) {
  begin = __atomic_load_n(&state.block.pos, __ATOMIC_RELAXED);
  // The end of the record is compared, because in such a child the block's end is null.
  const bool has_space = reinterpret_cast<uintptr_t>(begin) + length <=
                         reinterpret_cast<uintptr_t>(state.block.end);
  std::atomic_signal_fence(std::memory_order_seq_cst);
  return has_space;
}

// As find_space(), for the fast path, in fewer instructions. It may find no space for a
// record that is shorter than kShortRecord where the block's last bytes would do.
__attribute__((always_inline)) inline bool find_space_fast(const ThreadState& state,
                                                           uint32_t length,
                                                           std::byte*& begin) {
  constexpr uint32_t kShort = ExclusiveBlock::kShortRecord;
  begin = __atomic_load_n(&state.block.pos, __ATOMIC_RELAXED);
  bool has_space;
  if (__builtin_constant_p(length)) {
    has_space =
        is_above(state.block.limit, begin + (length > kShort ? length - kShort : 0));
  } else {
    has_space = is_above(state.block.end, begin + length - 1);
  }
  std::atomic_signal_fence(std::memory_order_seq_cst);
  return has_space;
}

// The distance of a time stamp to the block's base. A record can't have more than
// session.delta_max.
inline uint64_t ticks_from_base(const ThreadState& state, uint64_t ticks) {
  return ticks - state.block.base_ticks;
}

// Reads the CPU's counter as its distance to `base`. False: that is too far for 32 bits.
inline bool read_counter_from(const uint64_t& base, uint32_t& distance) {
#if defined(__x86_64__)
  // The counter comes in two halves; two subtractions with a borrow are less work than
  // making one number of them.
  uint32_t high;
  bool is_near;
  asm volatile("rdtsc\n\tsub %[base], %%eax\n\tsbb 4+%[base], %%edx"
               : "=&a"(distance), "=&d"(high), "=@ccz"(is_near)
               : [base] "m"(base));
  return is_near;
#else
  const uint64_t from_base = read_counter() - base;
  distance = static_cast<uint32_t>(from_base);
  return from_base <= UINT32_MAX;
#endif
}

// Begins a compact record at `begin`. REQUIRES: find_space() has found space there.
__attribute__((always_inline)) inline Reservation begin_compact(ThreadState& state,
                                                                std::byte* begin,
                                                                uint16_t type,
                                                                uint32_t length,
                                                                uint64_t from_base) {
  const uint32_t word0 = ARCTRACE_WORD0(type, length);
  // H1: the first store. The length lets readers step on from here, should the thread die
  // now; relaxed, because a reader of a live block stops at a word that is in progress.
  IpcAtomics::store_relaxed(word_at(begin), word0 | ARCTRACE_IN_PROGRESS);
  std::atomic_signal_fence(std::memory_order_seq_cst);
  // The position moves on only now, so that a signal handler that jumps away here leaves
  // no hole. `begin` is where it was, or in a fork child, whose state is wiped, there is
  // no block.
  advance(state.block.pos, length);
  part_at<arctrace_compact_head>(begin).tick_delta = static_cast<uint32_t>(from_base);
  return {begin,   begin + ARCTRACE_COMPACT_HEAD_SIZE,
          word0,   state.block.taken.index,
          nullptr, nullptr};
}

// Begins a bare record, which has the time of the block's base, in the same way.
__attribute__((always_inline)) inline Reservation begin_bare(ThreadState& state,
                                                             std::byte* begin,
                                                             uint16_t type,
                                                             uint32_t length) {
  const uint32_t word0 = ARCTRACE_WORD0(type, length);
  IpcAtomics::store_relaxed(word_at(begin), word0 | ARCTRACE_IN_PROGRESS);  // H1
  std::atomic_signal_fence(std::memory_order_seq_cst);
  advance(state.block.pos, length);
  return {begin,   begin + ARCTRACE_BARE_HEAD_SIZE,
          word0,   state.block.taken.index,
          nullptr, nullptr};
}

// Begins a record of the session's form. REQUIRES: find_space() has found space there,
// and from_base <= session.delta_max.
inline Reservation begin_own(ThreadState& state, std::byte* begin, uint16_t type,
                             uint32_t length, uint64_t from_base) {
  return has_bare_heads() ? begin_bare(state, begin, type, length)
                          : begin_compact(state, begin, type, length, from_base);
}

// Counts a user record that has been begun. If it were counted before, a death between
// the two would count a record that does not exist. Relaxed: the sum is read later. Only
// the outermost writer call gets here.
inline void count_written(ThreadState& state) {
  IpcAtomics::add_to_own_relaxed(state.slot.slot().written, 1);
}

// Makes the record visible to readers. I1 release, matches I2 (a reader of word 0): the
// record's body is visible.
__attribute__((always_inline)) inline void commit(const Reservation& record) {
  IpcAtomics::store_release(word_at(record.word0), record.committed);
  release(record);
}

// Reserves a record that can't simply be appended to the thread's exclusive block
// (slow_path.hpp).
__attribute__((noinline)) Reservation reserve_slow(Nesting nesting, uint16_t type,
                                                   uint32_t body_size, uint64_t ticks);

// Calls use(record) with space for a record that has `body_size` bytes (a multiple of 4)
// after its head, stamped `ticks`. The head is written, in progress. The usual case has
// its own copy of `use`, in which the reservation never leaves the registers. REQUIRES:
// with a full head the record is no longer than ARCTRACE_RECORD_LENGTH_MAX.
template <class Use>
__attribute__((always_inline)) inline auto with_record(Nesting nesting, uint16_t type,
                                                       uint32_t body_size, uint64_t ticks,
                                                       const Use& use) {
  ThreadState* state = thread_local_state.state;
  if (__builtin_expect(
          state != nullptr && !nesting.nested() && state->filtered.first_waiting == 0,
          1)) {
    const uint32_t length = session.head_size + body_size;
    std::byte* begin;
    const bool has_space = find_space(*state, length, begin);
    const uint64_t from_base = ticks_from_base(*state, ticks);
    const bool has_time = from_base <= session.delta_max &&
                          (!has_bare_heads() || state->block.word_ticks == ticks);
    if (__builtin_expect(has_space && has_time, 1)) {
      const Reservation record = begin_own(*state, begin, type, length, from_base);
      count_written(*state);
      return use(record);
    }
  }
  return use(reserve_slow(nesting, type, body_size, ticks));
}

// Reserves a record that another call commits.
inline Reservation reserve(Nesting nesting, uint16_t type, uint32_t body_size,
                           uint64_t ticks) {
  return with_record(nesting, type, body_size, ticks,
                     [](const Reservation& record) { return record; });
}

// Counts a record as lost that is longer than any may be.
inline void reserve_impossible(Nesting nesting, uint64_t ticks) {
  reserve_slow(nesting, ARCTRACE_TYPE_EVENT, ARCTRACE_RECORD_LENGTH_MAX, ticks);
}

// Writes a record whose body fill(body) stores. False: it was lost.
template <class Fill>
inline bool write_record(Nesting nesting, uint16_t type, uint32_t body_size,
                         uint64_t ticks, const Fill& fill) {
  return with_record(nesting, type, body_size, ticks, [&](const Reservation& record) {
    if (__builtin_expect(record.word0 == nullptr, 0)) return false;
    fill(record.body);
    commit(record);
    return true;
  });
}

// From where the fast path has the time of a record, and the head that it writes for it.
// Each session has one of the two.

// The CPU's counter, in compact heads. REQUIRES: fast_path_is_open().
struct CounterStamp {
  static constexpr uint32_t kHeadSize = ARCTRACE_COMPACT_HEAD_SIZE;

  uint32_t from_base;

  // False: the record cannot have the present time.
  __attribute__((always_inline)) bool read(const ThreadState& state) {
    return read_counter_from(state.block.base_ticks, from_base);
  }
  __attribute__((always_inline)) Reservation begin(ThreadState& state, std::byte* begin,
                                                   uint16_t type, uint32_t length) const {
    return begin_compact(state, begin, type, length, from_base);
  }
  // The time of a record in the shared chain.
  static uint64_t ticks(const ThreadState& /*state*/) { return read_counter(); }
};

// The clock word, in bare heads: a record that has another time than the one before it
// follows a TIME record, which the slow path writes. REQUIRES: word_path_is_open().
struct WordStamp {
  static constexpr uint32_t kHeadSize = ARCTRACE_BARE_HEAD_SIZE;

  __attribute__((always_inline)) bool read(const ThreadState& state) {
    const volatile uint64_t& time = session.view.control().time;
    return is_equal(time, state.block.word_ticks);
  }
  __attribute__((always_inline)) Reservation begin(ThreadState& state, std::byte* begin,
                                                   uint16_t type, uint32_t length) const {
    return begin_bare(state, begin, type, length);
  }
  static uint64_t ticks(const ThreadState& state) {
    const uint64_t now = IpcAtomics::load_relaxed(session.view.control().time);
    return now < state.chain.not_before ? state.chain.not_before : now;
  }
};

// The fast path of nearly every record: a thread's outermost writer call, with space in
// the thread's exclusive block. It is inlined into its callers and tests each of these
// conditions once. A thread without space there is handed over to the fast path of the
// shared chain, which is out of line: elsewhere(state) goes on with this writer call, and
// returns whether the record was written.
template <class Elsewhere, class Stamp = CounterStamp>
struct OwnBlock {
  Elsewhere elsewhere;

  // Calls use(nesting, state, record) with a record begun that has `body_size` bytes
  // after its head, if no writer call is in progress and fits(state); `here` is the
  // address for the writer call. False: nothing was done. Nothing is called on the way,
  // and values that are needed later are in few variables, so that the compiler saves no
  // registers. REQUIRES: what the Stamp does.
  template <class Here, class Fits, class Use>
  __attribute__((always_inline)) bool record(Here here, uint16_t type, uint32_t body_size,
                                             const Fits& fits, const Use& use) const {
    if (__builtin_expect(is_inside_writer(), 0)) return false;
    OutermostCall::begin(here);
    ThreadState* const state = thread_local_state.state;
    if (__builtin_expect(state == nullptr, 0)) return OutermostCall::refuse();
    const uint32_t length = Stamp::kHeadSize + body_size;
    std::byte* begin;
    if (__builtin_expect(!find_space_fast(*state, length, begin), 0))
      return elsewhere(*state);
    begin = in_register_beside_arguments<0>(begin);
    if (__builtin_expect(!fits(*state), 0)) return OutermostCall::refuse();
    Stamp stamp;
    if (__builtin_expect(!stamp.read(*state), 0)) return OutermostCall::refuse();
    if (begin == nullptr) __builtin_unreachable();  // there is space
    const Reservation record = stamp.begin(*state, begin, type, length);
    count_written(*state);
    use(Nesting::kOutermost, *state, record);
    OutermostCall::end(here);
    return true;
  }
};
template <class Elsewhere>
OwnBlock(Elsewhere) -> OwnBlock<Elsewhere>;

// The same by another stamp.
template <class Stamp, class Elsewhere>
__attribute__((always_inline)) inline OwnBlock<Elsewhere, Stamp> own_block(
    const Elsewhere& elsewhere) {
  return {elsewhere};
}

// The `Elsewhere` of a caller that takes the slow path then.
inline constexpr auto kNowhereElse = [](ThreadState&) ARCTRACE_INLINED {
  return OutermostCall::refuse();
};

// The functions below commit records that change which frames are open. Record and frames
// change as one step, also for a signal handler that comes in between, and for later
// calls if that handler jumps away.

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

// Counts a frame, which store() stores. It is counted first, so that handlers do not use
// its place. Until it is stored, its CFA is not known.
template <class Store>
__attribute__((always_inline)) inline void add_frame(ThreadState& state, FrameSlot slot,
                                                     const Store& store) {
  if (slot.to != nullptr) slot.to->frame.cfa = 0;
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

}  // namespace arctrace::writer
