// Keeps apart the writer calls of one thread that interrupt each other. While a call is
// in progress the thread's guard is set, so that a signal handler that interrupts it
// writes into the shared chain instead of the thread's block.
#pragma once

#include <atomic>
#include <cstdint>

#include "src/base/inlined.hpp"
#include "src/writer/thread_local.hpp"

namespace arctrace {

// Passed by value: the path of a record asks for it several times, and what is passed by
// reference is read from memory.
class Nesting {
 public:
  // Refused: too many calls interrupt one another, or the caller is no thread of ours.
  enum Kind : uint8_t { kOutermost, kNested, kRefused };
  constexpr Nesting(Kind kind) : kind_(kind) {}  // NOLINT(google-explicit-constructor)

  bool outermost() const { return kind_ == kOutermost; }
  // The call interrupts another one.
  bool nested() const { return kind_ == kNested; }
  // Nothing may be written.
  bool refused() const { return kind_ == kRefused; }
  // The same for a record, which then counts as lost.
  bool refuses_record() const {
    if (__builtin_expect(!refused(), 1)) return false;
    count_refused();
    return true;
  }

 private:
  __attribute__((noinline)) static void count_refused();

  Kind kind_;
};

// Whether a writer call would interrupt another one, or follow one whose handler jumped.
inline bool is_inside_writer() { return !is_zero(thread_local_state.guard); }

// Whether calls that have interrupted the outermost one have left something that is to be
// settled at its end.
inline bool has_unsettled_calls() {
  return !is_zero(thread_local_state.nesting) ||
         !is_zero(thread_local_state.nested_frames);
}

// How many frames such calls have added that they have not taken away again. Negative:
// they have left frames that were open before.
inline int32_t added_frames() {
  return static_cast<int32_t>(thread_local_state.nested_frames);
}

// As the address for a writer call: the stack pointer, which is stored without a register
// in between.
struct AtStackPointer {};

// The parts of a writer call that is known to interrupt none. One function may begin it,
// and another one, to which the first jumps, end it.
class OutermostCall {
 public:
  // `here`: an address on the stack that every call has which is made by the same frame,
  // but none that interrupts it. REQUIRES: !is_inside_writer().
  static void begin(uintptr_t here) {
    thread_local_state.guard = here;
    std::atomic_signal_fence(std::memory_order_seq_cst);
  }
  // The same with the stack pointer. Later calls of the same frame say frame_end().
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
    if (__builtin_expect(has_unsettled_calls(), 0)) return end_nested();
    thread_local_state.guard = 0;
  }
  // The same, where `here` is what began the call, by the guard alone: it is `here` as
  // long as no call was nested in this one.
  template <class Here>
  static void end(Here here) {
    std::atomic_signal_fence(std::memory_order_seq_cst);
    if (__builtin_expect(!ends_at(here), 0)) end_nested();
  }
  // Ends a call that did nothing: the same one begins anew right after this one, on the
  // slow path, and looks at its end what handlers left. Returns false.
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
  static void settle_nested();
  // The last thing that a call does, so that it may be jumped to. Out of line, so that
  // `flatten`ed callers stay small.
  ARCTRACE_KEEPS_REGISTERS __attribute__((noinline)) static void end_nested();
};

// Any writer call; `here` as above.
class WriterCall {
 public:
  explicit WriterCall(uintptr_t here = stack_pointer()) : nesting_(begin(here)) {}
  ~WriterCall() {
    if (__builtin_expect(nesting_.outermost(), 1)) {
      if (__builtin_expect(thread_local_state.owner != 0, 0)) {
        end_lent();
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
  // The end of a thread's outermost call while its storage is lent.
  __attribute__((noinline)) static void end_lent();

  const Nesting nesting_;
};

}  // namespace arctrace
