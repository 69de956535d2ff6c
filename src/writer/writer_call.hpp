// Keeps apart the writer calls of one thread that interrupt each other. While a call is
// in progress the thread's guard is set, so that a signal handler that interrupts it
// writes into the shared chain instead of the thread's block. A change of the open frames
// is announced, so that it is finished or taken back if a handler jumps out of it. Tasks
// that use another thread's thread-local storage are told apart from that thread.
#pragma once

#include <atomic>
#include <cstdint>

#include "src/base/memory.hpp"
#include "src/writer/thread_state.hpp"

namespace arctrace::writer {

// How a writer call is nested. It is passed by value, because the path of a record reads
// it several times, and a reference would be read from memory.
class Nesting {
 public:
  // Refused: too many calls interrupt one another, or the caller uses another thread's
  // storage.
  enum Kind : uint8_t { kOutermost, kNested, kRefused };
  constexpr Nesting(Kind kind) : kind_(kind) {}  // NOLINT(google-explicit-constructor)

  bool outermost() const { return kind_ == kOutermost; }
  // Whether the call interrupts another one.
  bool nested() const { return kind_ == kNested; }
  // Whether nothing may be written.
  bool refused() const { return kind_ == kRefused; }
  // Whether nothing may be written; the record then counts as lost.
  bool refuses_record() const {
    if (__builtin_expect(!refused(), 1)) return false;
    count_refused();
    return true;
  }

 private:
  __attribute__((noinline)) static void count_refused();

  Kind kind_;
};

// Whether a writer call would interrupt another one, or follow one that a handler's jump
// abandoned.
inline bool is_inside_writer() { return !is_zero(thread_local_state.guard); }

// Whether calls that have interrupted the outermost one have left work that it has to do
// at its end.
inline bool has_unresolved_calls() {
  return !is_zero(thread_local_state.nesting) ||
         !is_zero(thread_local_state.nested_frames);
}

// The number of frames that such calls have added and not removed again. Negative: they
// have removed frames that were open before.
inline int32_t added_frames() {
  return static_cast<int32_t>(thread_local_state.nested_frames);
}

// Stands for the stack pointer as the address for a writer call: it is stored without a
// register in between.
struct AtStackPointer {};

// The parts of a writer call that is known to interrupt none. One function may begin it,
// and another one, to which the first jumps, end it.
class OutermostCall {
 public:
  // `here`: an address on the stack that all calls made by the same frame have, but no
  // call that interrupts them. REQUIRES: !is_inside_writer().
  static void begin(uintptr_t here) {
    thread_local_state.guard = here;
    std::atomic_signal_fence(std::memory_order_seq_cst);
  }
  // As above, with the stack pointer. Later calls of the same frame pass frame_end().
  static void begin(AtStackPointer /*here*/) {
#if defined(__x86_64__)
    asm volatile("movq %%rsp, %0" : "=m"(thread_local_state.guard));
    std::atomic_signal_fence(std::memory_order_seq_cst);
#else
    begin(stack_pointer());
#endif
  }
  static void end() {
    std::atomic_signal_fence(std::memory_order_seq_cst);
    if (__builtin_expect(has_unresolved_calls(), 0)) return end_nested();
    thread_local_state.guard = 0;
  }
  // As above, where `here` is the address with which the call began: the guard alone is
  // compared, which is `here` as long as no call was nested in this one.
  template <class Here>
  static void end(Here here) {
    std::atomic_signal_fence(std::memory_order_seq_cst);
    if (__builtin_expect(!ends_at(here), 0)) end_nested();
  }
  // Ends a call that did nothing: the same one begins anew right after this one, on the
  // slow path, and checks at its end what handlers left. Returns false.
  static bool refuse() {
    std::atomic_signal_fence(std::memory_order_seq_cst);
    thread_local_state.guard = 0;
    return false;
  }

 private:
  friend class WriterCall;

  // Sets the guard to 0 and returns true, if it is `here`.
  static bool ends_at(uintptr_t here) {
#if defined(__x86_64__)
    bool is_zero_now;
    asm volatile("subq %2, %1"
                 : "=@ccz"(is_zero_now), "+m"(thread_local_state.guard)
                 : "r"(here));
    return is_zero_now;
#else
    if (thread_local_state.guard != here) return false;
    thread_local_state.guard = 0;
    return true;
#endif
  }
  static bool ends_at(AtStackPointer /*here*/) {
#if defined(__x86_64__)
    bool is_zero_now;
    asm volatile("subq %%rsp, %1" : "=@ccz"(is_zero_now), "+m"(thread_local_state.guard));
    return is_zero_now;
#else
    return ends_at(stack_pointer());
#endif
  }
  static void resolve_nested();
  // The last step of a call, so that it may be jumped to. It is out of line, so that
  // `flatten`ed callers stay small.
  ARCTRACE_KEEPS_REGISTERS __attribute__((noinline)) static void end_nested();
};

// Any writer call; `here` as for OutermostCall.
class WriterCall {
 public:
  explicit WriterCall(uintptr_t here = stack_pointer()) : nesting_(begin(here)) {}
  ~WriterCall() {
    if (__builtin_expect(nesting_.outermost(), 1)) {
      if (__builtin_expect(thread_local_state.owner != 0, 0)) {
        end_shared();
      } else {
        OutermostCall::end();
      }
    } else if (nesting_.nested()) {
      leave_nested();
    }
  }
  WriterCall(const WriterCall&) = delete;
  WriterCall& operator=(const WriterCall&) = delete;

  operator Nesting() const { return nesting_; }  // NOLINT(google-explicit-constructor)
  bool refused() const { return nesting_.refused(); }
  bool refuses_record() const { return nesting_.refuses_record(); }
  bool nested() const { return nesting_.nested(); }

 private:
  static Nesting begin(uintptr_t here) {
    if (__builtin_expect(is_inside_writer(), 0)) {
      const Nesting nesting = enter_nested(here);
      std::atomic_signal_fence(std::memory_order_seq_cst);
      return nesting;
    }
    OutermostCall::begin(here);
    return Nesting::kOutermost;
  }
  __attribute__((noinline)) static Nesting enter_nested(uintptr_t here);
  __attribute__((noinline)) static void leave_nested();
  // The end of a thread's outermost call while its thread-local storage is shared.
  __attribute__((noinline)) static void end_shared();

  const Nesting nesting_;
};

// Changes of the open frames that a signal handler may interrupt. A change is announced
// before its record is committed. If a handler comes in between and jumps away, the next
// writer call finishes the change, provided that the record was committed.

// Ends the change in progress. Between writer calls there is none.
inline void finish_change(ThreadLocal& local) {
  std::atomic_signal_fence(std::memory_order_seq_cst);
  local.change.word0 = nullptr;
  std::atomic_signal_fence(std::memory_order_seq_cst);
}

// REQUIRES: there is no change in progress.
inline void announce(ThreadLocal& local, const StackChange& change) {
  local.change.depth = change.depth;
  std::atomic_signal_fence(std::memory_order_seq_cst);
  local.change.word0 = change.word0;
  std::atomic_signal_fence(std::memory_order_seq_cst);
}

// A change that adds the outermost `depth`-th frame, of which there is no record.
StackChange unrecorded_enter(uint32_t depth);

// For a writer call of a signal handler: finishes the change that it interrupted, if its
// record is committed. Otherwise, if the change adds a frame, counts that frame.
__attribute__((noinline)) void resolve_change(ThreadLocal& local);

// Ends a change that will never go on, because the handler jumped: if its record is not
// committed, the change is taken back.
void abandon_change(ThreadLocal& local);

// Shared thread-local storage: a task that was made by clone(CLONE_VM) without
// thread-local storage of its own uses that of the thread that made it, at the same time.
// Nothing is recorded of such a borrower; its records count as lost. While a thread's
// storage is shared, the thread's guard is never 0, so that all calls take the slow path,
// where the two are told apart by the thread id. The thread keeps its guard in another
// variable meanwhile.
//
// The shim announces a borrower that libc's clone() makes. Others are noticed on the slow
// path, by a stack pointer outside of the thread's own stack.

// To be called by a thread before it makes a task that will use its storage. Does nothing
// where no system call may be made: there a borrower is taken for a coroutine.
void share_storage();

inline bool storage_is_shared() { return thread_local_state.owner != 0; }

// Whether the calling task is a borrower. REQUIRES: storage_is_shared(). In a child that
// was forked since, the storage is the child's own again: false.
bool is_borrower();

// Checks whether a task with this stack pointer is a borrower that nobody announced.
// Makes a system call for the thread id if the stack pointer is far from the last one for
// which that was done.
bool detect_borrower(uintptr_t stack_pointer);

}  // namespace arctrace::writer
