// The write path. A WriteScope says that this thread is inside the writer, so that a
// signal handler that interrupts it takes the shared chain; reserve() finds room for one
// record in the thread's exclusive block or in a shared one; commit() publishes it.
#pragma once

#include <arctrace/format.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "src/base/shared_atomics.hpp"
#include "src/process/session.hpp"
#include "src/writer/thread_state.hpp"

namespace arctrace {

// A change of the open frames' number whose record is being written. Who finds it
// unfinished, in a signal handler or behind one that jumped, knows by the record whether
// it counts.
struct StackChange {
  std::byte* word0;    // of the record; null: none
  uint32_t committed;  // what stands there when it is complete
  uint32_t depth;      // open frames then
};

struct ThreadLocal {
  ThreadState* state;    // null before the first record
  uintptr_t guard;       // stack pointer of the outermost writer call in progress, or 0
  uint32_t nesting;      // writer calls in progress below the outermost one
  StackChange change;    // of the innermost call in progress
  bool frame_disturbed;  // a signal handler had frames of its own
  ThreadStacks stacks;   // here, not in the state: a fork child runs on the same ones
  ReturnStack* calls;    // the state's; here for the same reason
  // What holds by the call filter inside the innermost open frame, and outside all of
  // them: a fork child begins with the former.
  FilterScope filter_scope;
  FilterScope filter_outermost;
  uint32_t telling;  // index + 1 of the frame whose late entry `change` is; 0: none
};
// initial-exec: the dynamic TLS model may allocate on first use, inside a hook.
extern thread_local constinit ThreadLocal thread_local_state
    __attribute__((tls_model("initial-exec")));

inline uintptr_t stack_pointer() {
  uintptr_t sp;
#if defined(__x86_64__)
  asm volatile("mov %%rsp, %0" : "=r"(sp));
#else
  asm volatile("mov %0, sp" : "=r"(sp));
#endif
  return sp;
}

// How a writer call stands to the others of its thread. By value: the path of a record
// asks for it several times, and what is passed by reference is read from memory.
class ScopeKind {
 public:
  enum Kind : uint8_t { kOutermost, kNested, kRefused };
  constexpr ScopeKind(Kind kind) : kind_(kind) {}  // NOLINT(google-explicit-constructor)

  bool outermost() const { return kind_ == kOutermost; }
  // It interrupts another one.
  bool nested() const { return kind_ == kNested; }
  // Nested too deep: nothing may be written.
  bool refused() const { return kind_ == kRefused; }
  // The same for a record, which then counts as lost.
  bool refuses_record() const {
    if (__builtin_expect(!refused(), 1)) return false;
    count_refused();
    return true;
  }
  // Of the thread, found anew each time: a reference kept here would be read from memory.
  static ThreadLocal& local() { return thread_local_state; }

 private:
  __attribute__((noinline)) static void count_refused();

  Kind kind_;
};

// Whether a writer call would interrupt another one, or follow one whose handler jumped.
inline bool is_inside_writer() { return thread_local_state.guard != 0; }

// A writer call that is known to interrupt none. REQUIRES: !is_inside_writer().
// `here`: a place on the stack that each call has which is made by the same frame, but
// none that interrupts it.
class OutermostScope {
 public:
  explicit OutermostScope(uintptr_t here) { begin(here); }
  ~OutermostScope() {
    if (__builtin_expect(is_followed_, 0)) {
      release();
    } else {
      end();
    }
  }
  // Nothing was done: the same call begins anew right behind this one, the long way, and
  // looks at the end what handlers left.
  bool refuse() {
    is_followed_ = true;
    return false;
  }
  OutermostScope(const OutermostScope&) = delete;
  OutermostScope& operator=(const OutermostScope&) = delete;

  // NOLINTNEXTLINE(google-explicit-constructor)
  constexpr operator ScopeKind() const { return ScopeKind::kOutermost; }

 private:
  friend class WriteScope;
  static void begin(uintptr_t here) {
    thread_local_state.change.word0 = nullptr;
    std::atomic_signal_fence(std::memory_order_seq_cst);
    thread_local_state.guard = here;
    std::atomic_signal_fence(std::memory_order_seq_cst);
  }
  static void end() {
    std::atomic_signal_fence(std::memory_order_seq_cst);
    if (__builtin_expect(thread_local_state.nesting != 0, 0)) abandon_nested();
    thread_local_state.guard = 0;
  }
  static void release() {
    std::atomic_signal_fence(std::memory_order_seq_cst);
    thread_local_state.guard = 0;
  }
  // Not inlined, like all that is rare: who flattens the path of a record wants it short.
  __attribute__((noinline)) static void abandon_nested();

  bool is_followed_ = false;
};

// Any writer call; `here` as above.
class WriteScope {
 public:
  explicit WriteScope(uintptr_t here = stack_pointer()) : kind_(begin(here)) {}
  ~WriteScope() {
    if (__builtin_expect(kind_.outermost(), 1)) {
      OutermostScope::end();
    } else if (kind_.nested()) {
      std::atomic_signal_fence(std::memory_order_seq_cst);
      --local().nesting;
    }
  }
  WriteScope(const WriteScope&) = delete;
  WriteScope& operator=(const WriteScope&) = delete;

  operator ScopeKind() const { return kind_; }  // NOLINT(google-explicit-constructor)
  bool refused() const { return kind_.refused(); }
  bool refuses_record() const { return kind_.refuses_record(); }
  bool nested() const { return kind_.nested(); }
  static ThreadLocal& local() { return thread_local_state; }

 private:
  static ScopeKind begin(uintptr_t here) {
    if (__builtin_expect(is_inside_writer(), 0)) {
      const ScopeKind kind = enter_nested(here);
      std::atomic_signal_fence(std::memory_order_seq_cst);
      return kind;
    }
    OutermostScope::begin(here);
    return ScopeKind::kOutermost;
  }
  __attribute__((noinline)) static ScopeKind enter_nested(uintptr_t here);

  const ScopeKind kind_;
};

struct Reservation {
  std::byte* word0;  // null: nothing reserved, the loss is counted
  std::byte* body;
  uint32_t committed;  // word 0 of the complete record
  uint32_t block;      // index
  bool shared;         // release the active name after the commit
};

// The slow path: attaches the thread, changes blocks, rebases time, takes the shared
// chain.
__attribute__((noinline)) Reservation reserve_slow(ScopeKind scope, uint16_t type,
                                                   uint32_t body_size, uint64_t ticks);

// For a record longer than any may be, which is just counted as lost.
inline void reserve_impossible(ScopeKind scope, uint64_t ticks) {
  reserve_slow(scope, ARCTRACE_TYPE_EVENT, ARCTRACE_RECORD_LENGTH_MAX, ticks);
}

// Where a compact record of `length` bytes begins in the thread's exclusive block. False:
// it has no room. Read once, and before anything else of the state: a handler may fork,
// and its child, whose state is wiped, go on here with the parent's record.
inline bool find_place(const ThreadState& state, uint32_t length, std::byte*& place) {
  place = __atomic_load_n(&state.pos, __ATOMIC_RELAXED);
  const bool has_room = state.end - place >= static_cast<ptrdiff_t>(length);
  std::atomic_signal_fence(std::memory_order_seq_cst);
  return has_room;
}

// Of a stamp to the block's base; beyond UINT32_MAX a record can't tell it.
inline uint64_t ticks_from_base(const ThreadState& state, uint64_t ticks) {
  return ticks - state.base_ticks;
}

// Begins a compact record at `place`, where it has room.
inline Reservation begin_compact(ThreadState& state, std::byte* place, uint16_t type,
                                 uint32_t length, uint64_t from_base) {
  const uint32_t word0 = ARCTRACE_WORD0(type, length);
  // H1: the first store. Its length lets anyone step on from here, should we die now;
  // relaxed, because who walks a live block stops at a word that is in progress.
  IpcAtomics::store_relaxed(word_at(place), word0 | ARCTRACE_IN_PROGRESS);
  std::atomic_signal_fence(std::memory_order_seq_cst);
  // Only now: a signal handler that jumps away here leaves no hole.
  state.pos = place + length;
  word_at(place + 4) = static_cast<uint32_t>(from_base);
  return {place, place + ARCTRACE_COMPACT_HEAD_SIZE, word0, state.block.index, false};
}

// A user record has been begun; not before, or a death between would count one that is
// nowhere. Relaxed: a sum for who reads it later. Only the outermost call gets here.
inline void count_written(const ThreadState& state) {
  uint64_t* written = state.written;
  // None in a fork child that goes on with the call which its parent's handler
  // interrupted.
  if (__builtin_expect(written == nullptr, 0)) return;
  IpcAtomics::store_relaxed(*written, IpcAtomics::load_relaxed(*written) + 1);
}

// Calls use(record) with room for a record that has `body_size` bytes (a multiple of 4)
// behind its head, stamped `ticks`. The head is written, in progress. The usual case has
// a copy of `use` to itself, in which the reservation never leaves the registers.
// REQUIRES: with a full head it is no longer than ARCTRACE_RECORD_LENGTH_MAX.
template <class Use>
__attribute__((always_inline)) inline auto with_record(ScopeKind scope, uint16_t type,
                                                       uint32_t body_size, uint64_t ticks,
                                                       const Use& use) {
  ThreadState* state = scope.local().state;
  if (__builtin_expect(state != nullptr && !scope.nested() && state->first_waiting == 0,
                       1)) {
    const uint32_t length = ARCTRACE_COMPACT_HEAD_SIZE + body_size;
    std::byte* place;
    const bool has_room = find_place(*state, length, place);
    const uint64_t from_base = ticks_from_base(*state, ticks);
    if (__builtin_expect(has_room && from_base <= UINT32_MAX, 1)) {
      const Reservation record = begin_compact(*state, place, type, length, from_base);
      count_written(*state);
      return use(record);
    }
  }
  return use(reserve_slow(scope, type, body_size, ticks));
}

// The same, where the record is finished by another call.
inline Reservation reserve(ScopeKind scope, uint16_t type, uint32_t body_size,
                           uint64_t ticks) {
  return with_record(scope, type, body_size, ticks,
                     [](const Reservation& record) { return record; });
}

__attribute__((noinline)) void release_shared(ScopeKind scope);

// Finishes the change that a signal handler interrupted, if its record is complete.
__attribute__((noinline)) void resolve_change(ThreadLocal& local);

// I1 release, matches I2 (whoever reads word 0): the record's body is visible.
inline void commit(ScopeKind scope, const Reservation& record) {
  IpcAtomics::store_release(word_at(record.word0), record.committed);
  if (__builtin_expect(record.shared, 0)) release_shared(scope);
}

inline void store_u32(std::byte* to, uint32_t value) { __builtin_memcpy(to, &value, 4); }
inline void store_u64(std::byte* to, uint64_t value) { __builtin_memcpy(to, &value, 8); }

// A record whose body is one u64, two u32 ... : `fill(body)` writes it.
template <class Fill>
inline bool write_record(ScopeKind scope, uint16_t type, uint32_t body_size,
                         uint64_t ticks, const Fill& fill) {
  return with_record(scope, type, body_size, ticks, [&](const Reservation& record) {
    if (__builtin_expect(record.word0 == nullptr, 0)) return false;
    fill(record.body);
    commit(scope, record);
    return true;
  });
}

// The calling thread's state with a slot, attaching it if need be; null if it can't be.
ThreadState* attached_thread(ScopeKind scope, uint64_t ticks);

// Attaches the calling thread if it is not and may be.
void attach_this_thread();

// The same for a record that is about to be written: null counts it as lost.
ThreadState* recording_thread(ScopeKind scope, uint64_t ticks);

// Reserves a full-form record in a chain for an attached thread. Used for definitions.
Reservation reserve_definition(ScopeKind scope, ThreadState& state, ProcessState& process,
                               uint16_t type, uint32_t body_size, uint64_t ticks);

// Tells all calls that wait for their duration (call_filter.hpp). REQUIRES: one does.
void tell_all_calls(ScopeKind scope, ThreadState& state);

// OWNED -> CLOSED for the thread's exclusive block, if it has one.
void close_block(ThreadState& state);

}  // namespace arctrace
