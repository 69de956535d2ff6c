// The entry points through which nearly all records of calls come, each with its fast
// path inlined. It is a file of its own, so that the code that the compiler generates for
// it depends on nothing else. `flatten` inlines what is not marked always_inline; slow
// paths are out of line.
#include <arctrace/arctrace.h>

#include "src/api/shim_interface.h"
#include "src/calls/call_records.hpp"
#include "src/calls/fast_path.hpp"
#include "src/calls/filtered_path.hpp"
#include "src/process/gate.hpp"
#include "src/process/session.hpp"
#include "src/writer/record_filter.hpp"
#include "src/writer/shared_records.hpp"

using namespace arctrace;
using namespace arctrace::writer;  // the C functions below are the namespace's face

namespace {

// The slow forms are out of line, so that the functions below save no registers for them.
// So are the _in_chain forms, to which these hand over the writer call of a thread that
// has no space in a block of its own: they write into the shared chain, or take the slow
// path.

// The frame at `cfa`, as enter_framed_fast() takes it.
__attribute__((always_inline)) inline auto frame_at(uintptr_t cfa) {
  return [=]() ARCTRACE_INLINED { return MachineFrame(cfa); };
}

__attribute__((noinline)) void enter_unless_closed(uint64_t key, uintptr_t cfa,
                                                   uintptr_t here) {
  if (!is_recorded(ARCTRACE_GATE_FUNCTIONS)) return;
  if (filtered_path_is_open() && enter_filtered_frame(key, cfa, here)) return;
  arctrace_shim_call call{};
  call.cfa = cfa;
  enter_slow(key, call, here, nullptr);
}

template <class Stamp>
__attribute__((noinline, flatten)) void enter_in_chain(uint64_t key, uintptr_t cfa,
                                                       uintptr_t here,
                                                       ThreadState& state) {
  const KnownSharedBlock<Stamp> block{state};
  if (__builtin_expect(enter_framed_fast(block, key, frame_at(cfa), here), 1)) return;
  enter_unless_closed(key, cfa, here);
}

// False: nothing was done. REQUIRES: what the Stamp does.
template <class Stamp>
__attribute__((always_inline)) inline bool enter_by(uint64_t key, uintptr_t cfa) {
  const auto block = own_block<Stamp>([&](ThreadState& state) ARCTRACE_INLINED {
    enter_in_chain<Stamp>(key, cfa, frame_end(), state);
    return true;
  });
  return enter_framed_fast(block, key, frame_at(cfa), AtStackPointer{});
}

__attribute__((always_inline)) inline void enter(uint64_t key, uintptr_t cfa) {
  if (__builtin_expect(fast_path_is_open<ARCTRACE_GATE_FUNCTIONS>() &&
                           enter_by<CounterStamp>(key, cfa),
                       1)) {
    return;
  }
  if (word_path_is_open<ARCTRACE_GATE_FUNCTIONS>() && enter_by<WordStamp>(key, cfa)) {
    return;
  }
  enter_unless_closed(key, cfa, frame_end());
}

constexpr auto kAnyFrame = [](const MachineFrame&) { return true; };

__attribute__((noinline)) void exit_unless_closed(uint64_t key, uintptr_t here) {
  if (!is_recorded(ARCTRACE_GATE_FUNCTIONS)) return;
  if (filtered_path_is_open() && exit_filtered_frame(key, here)) return;
  exit_slow(key, 0, here, nullptr);
}

template <class Stamp>
__attribute__((noinline, flatten)) void exit_in_chain(uint64_t key, uintptr_t here,
                                                      ThreadState& state) {
  const KnownSharedBlock<Stamp> block{state};
  if (__builtin_expect(exit_fast(block, key, here, kAnyFrame), 1)) return;
  exit_unless_closed(key, here);
}

// False: nothing was done. REQUIRES: what the Stamp does.
template <class Stamp>
__attribute__((always_inline)) inline bool exit_by(uint64_t key) {
  const auto block = own_block<Stamp>([&](ThreadState& state) ARCTRACE_INLINED {
    exit_in_chain<Stamp>(key, frame_end(), state);
    return true;
  });
  return exit_fast(block, key, AtStackPointer{}, kAnyFrame);
}

// The locks of a stub's call, as the stub has stored them.
template <uint32_t kCount>
__attribute__((always_inline)) inline CallLocks<kCount> stored_locks(
    const uintptr_t* return_slot) {
  CallLocks<kCount> locks;
  for (uint32_t i = 0; i < kCount; ++i) {
    locks.addresses[i] =
        return_slot[ARCTRACE_SHIM_STUB_ARGUMENT(static_cast<ptrdiff_t>(i))];
  }
  return locks;
}

template <uint32_t kCount>
__attribute__((noinline, flatten)) bool begin_with_locks_in_chain(
    uint64_t key, const uintptr_t* return_slot, ThreadState& state) {
  return call_began_fast(KnownSharedBlock{state}, key, {return_slot, 0, 0},
                         stored_locks<kCount>(return_slot));
}

template <uint32_t kCount>
__attribute__((always_inline)) inline bool begin_with_locks(
    uint64_t key, const uintptr_t* return_slot) {
  const OwnBlock block{[&](ThreadState& state) ARCTRACE_INLINED {
    return begin_with_locks_in_chain<kCount>(key, return_slot, state);
  }};
  return fast_path_is_open<ARCTRACE_GATE_FUNCTIONS>() &&
         call_began_fast(block, key, {return_slot, 0, 0},
                         stored_locks<kCount>(return_slot));
}

// Begins a call that the fast path does not, if it is ready and a filter is in force.
__attribute__((noinline)) int begin_by_filter(const arctrace_shim_stub_call& call,
                                              const uintptr_t* return_slot) {
  if (!filtered_path_is_open()) return ARCTRACE_SHIM_NOT_BEGUN;
  const uintptr_t arguments[] = {return_slot[ARCTRACE_SHIM_STUB_ARGUMENT(0)],
                                 return_slot[ARCTRACE_SHIM_STUB_ARGUMENT(1)]};
  switch (begin_filtered_stub_call(call, return_slot, arguments)) {
    case FilteredEntry::kAdded:
      return ARCTRACE_SHIM_BEGUN;
    case FilteredEntry::kLeftOut:
      return ARCTRACE_SHIM_LEFT_OUT;
    default:
      return ARCTRACE_SHIM_NOT_BEGUN;
  }
}

// Begins a call whose entry has locks, if it is ready. It is out of line, so that calls
// without locks save no registers for it.
__attribute__((noinline, flatten)) int begin_lock_call(
    const arctrace_shim_stub_call& call, const uintptr_t* return_slot,
    uint32_t ready_at) {
  const uint64_t key = __atomic_load_n(&call.key, __ATOMIC_RELAXED);
  const uint32_t number = current_fast_gate().live_filter_number;
  bool has_begun = false;
  if (__builtin_expect(ready_at == ARCTRACE_SHIM_READY_WITH_LOCKS(number, 1), 1)) {
    has_begun = begin_with_locks<1>(key, return_slot);
  } else if (ready_at == ARCTRACE_SHIM_READY_WITH_LOCKS(number, 2)) {
    has_begun = begin_with_locks<2>(key, return_slot);
  }
  return has_begun ? ARCTRACE_SHIM_BEGUN : begin_by_filter(call, return_slot);
}

}  // namespace

__attribute__((flatten)) void arctrace_enter(uint64_t frame_key) { enter(frame_key, 0); }

__attribute__((flatten)) void arctrace_enter_at(uint64_t frame_key, uintptr_t location) {
  enter(frame_key, location);
}

__attribute__((flatten)) void arctrace_exit(uint64_t frame_key) {
  if (__builtin_expect(fast_path_is_open<ARCTRACE_GATE_FUNCTIONS>() &&
                           exit_by<CounterStamp>(frame_key),
                       1)) {
    return;
  }
  if (word_path_is_open<ARCTRACE_GATE_FUNCTIONS>() && exit_by<WordStamp>(frame_key)) {
    return;
  }
  exit_unless_closed(frame_key, frame_end());
}

void arctrace_shim_enter(uint64_t frame_key, const struct arctrace_shim_call* call) {
  if (is_recorded(ARCTRACE_GATE_FUNCTIONS)) {
    enter_slow(frame_key, *call, call->stack_pointer, nullptr);
  }
}

int arctrace_shim_exit(uint64_t frame_key, uintptr_t stack_pointer) {
  if (!is_recorded(ARCTRACE_GATE_FUNCTIONS)) return 1;
  return exit_innermost_slow(frame_key, stack_pointer, nullptr) ? 1 : 0;
}

void arctrace_shim_exit_at(uint64_t frame_key, uintptr_t cfa, uintptr_t stack_pointer) {
  if (is_recorded(ARCTRACE_GATE_FUNCTIONS)) {
    exit_slow(frame_key, cfa, stack_pointer, nullptr);
  }
}

__attribute__((flatten)) int arctrace_shim_stub_begin(
    const struct arctrace_shim_stub_call* call, const uintptr_t* return_slot) {
  // Acquire: the target and the key are those that the shim stored before.
  const uint32_t ready_at = __atomic_load_n(&call->ready_at, __ATOMIC_ACQUIRE);
  const volatile FastGate& gate = current_fast_gate();
  if (__builtin_expect(!is_equal(gate.live_filter_number, ready_at), 0)) {
    if (!ARCTRACE_SHIM_HAS_LOCKS(ready_at)) return begin_by_filter(*call, return_slot);
    return begin_lock_call(*call, return_slot, ready_at);
  }
  const bool has_begun = call_began_anywhere(
      gate, __atomic_load_n(&call->key, __ATOMIC_RELAXED), {return_slot, 0, 0});
  if (__builtin_expect(has_begun, 1)) return ARCTRACE_SHIM_BEGUN;
  return begin_by_filter(*call, return_slot);
}

__attribute__((flatten)) int arctrace_shim_entry_begin(uint64_t frame_key,
                                                       const uintptr_t* return_slot) {
  const bool has_begun =
      call_began_anywhere(current_fast_gate(), frame_key, {return_slot, 0, 0});
  return __builtin_expect(has_begun, 1) ? 1 : 0;
}

int arctrace_shim_call_begin(uint64_t frame_key, const uintptr_t* return_slot,
                             uintptr_t frame_pointer, uint32_t flags) {
  return call_began(frame_key, return_slot, frame_pointer, flags);
}

void arctrace_shim_call_end(uintptr_t* return_slot, uintptr_t result) {
  call_ended(return_slot, result);
}
