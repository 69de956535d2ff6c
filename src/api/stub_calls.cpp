// Entry and exit of a call through a stub of x86-64: the stub calls the first function
// before the called one, which then returns to the second one. All registers keep their
// values: arguments, results, and whatever callers of other conventions than C's count
// on. So these functions save the registers that they use, and so do the slow paths. The
// stubs save none.
#include "src/api/shim_interface.h"
#include "src/calls/fast_path.hpp"
#include "src/calls/filtered_path.hpp"
#include "src/hook_abi/stub_places.h"
#include "src/process/gate.hpp"
#include "src/writer/shared_records.hpp"

using namespace arctrace;
using namespace arctrace::writer;

namespace {

template <class Stamp>
ARCTRACE_KEEPS_REGISTERS __attribute__((noinline, flatten)) bool begin_in_chain(
    uint64_t key, const uintptr_t* return_slot, ThreadState& state) {
  return call_began_fast(KnownSharedBlock<Stamp>{state}, key, {return_slot, 0, 0});
}

template <uint32_t kCount>
__attribute__((always_inline)) inline CallLocks<kCount> locks_of(
    uintptr_t first, [[maybe_unused]] uintptr_t second) {
  if constexpr (kCount == 1) {
    return {{first}};
  } else {
    return {{first, second}};
  }
}

template <class Stamp, uint32_t kCount>
ARCTRACE_KEEPS_REGISTERS __attribute__((noinline, flatten)) bool
begin_with_locks_in_chain(uint64_t key, const uintptr_t* return_slot, uintptr_t first,
                          uintptr_t second, ThreadState& state) {
  return call_began_fast(KnownSharedBlock<Stamp>{state}, key, {return_slot, 0, 0},
                         locks_of<kCount>(first, second));
}

// Begins a call whose entry has locks. It is out of line, so that calls without locks
// save no registers for it. False: nothing was done. REQUIRES: what the Stamp does.
template <class Stamp, uint32_t kCount>
ARCTRACE_KEEPS_REGISTERS __attribute__((noinline, flatten)) bool begin_with_locks(
    uintptr_t first, uintptr_t second, const uintptr_t* call_word) {
  const EnteredKey key{call_word};
  const uintptr_t* return_slot = call_word + 1;
  const auto block = own_block<Stamp>([&](ThreadState& state) ARCTRACE_INLINED {
    return begin_with_locks_in_chain<Stamp, kCount>(key, return_slot, first, second,
                                                    state);
  });
  return call_began_fast(block, key, {return_slot, 0, 0},
                         locks_of<kCount>(first, second));
}

// The word that has the call's address, on the stack of the function into which this is
// inlined. It is found anew at each use, so that no register is kept for it.
__attribute__((always_inline)) inline const uintptr_t* entered_call_word() {
  return reinterpret_cast<const uintptr_t*>(frame_end());
}

// The return slot of the function into which this is inlined.
__attribute__((always_inline)) inline volatile uintptr_t* own_return_address() {
  return reinterpret_cast<volatile uintptr_t*>(frame_end()) - 1;
}

// Has the function whose own return address, to the stub, is in `returns_to` return to
// the place where the stub is to go on with the call.
__attribute__((always_inline)) inline void return_as(FilteredEntry entry,
                                                     volatile uintptr_t* returns_to) {
  if (entry == FilteredEntry::kAdded) return;
  *returns_to =
      *returns_to - (entry == FilteredEntry::kLeftOut ? ARCTRACE_SHIM_LEFT_OUT_BEFORE
                                                      : ARCTRACE_SHIM_NOT_BEGUN_BEFORE);
}

// Whether the filter in force may leave the call out, which has to be examined then. It
// is a function of its own, because that of a call that is recorded should save few
// registers.
ARCTRACE_KEEPS_REGISTERS __attribute__((noinline)) bool call_may_be_left_out(
    const uintptr_t* call_word) {
  const auto& call = *reinterpret_cast<const arctrace_shim_stub_call*>(*call_word);
  return may_be_left_out(thread_local_state.filter_context,
                         __atomic_load_n(&call.filter, __ATOMIC_RELAXED));
}

// Whether the filter leaves a ready call out.
ARCTRACE_KEEPS_REGISTERS __attribute__((noinline)) bool call_is_left_out(
    const uintptr_t* call_word) {
  const auto& call = *reinterpret_cast<const arctrace_shim_stub_call*>(*call_word);
  const uint32_t ready_at = __atomic_load_n(&call.ready_at, __ATOMIC_ACQUIRE);
  return ready_at == IpcAtomics::load_relaxed(call_filter.number) &&
         filtered_path_is_open_by(ready_at) &&
         is_left_out(
             StubCall{call_word + 1, 0, __atomic_load_n(&call.filter, __ATOMIC_RELAXED)});
}

// Begins a call whose entry has locks, if it is ready by the live filter with this
// number. False: nothing was done. REQUIRES: what the Stamp does.
template <class Stamp>
__attribute__((always_inline)) inline bool begin_if_ready_with_locks(
    const volatile uint32_t& number, uint32_t ready_at, uintptr_t first, uintptr_t second,
    const uintptr_t* call_word) {
  if (is_equal(number, ready_at - ARCTRACE_SHIM_READY_WITH_LOCKS(0, 1))) {
    return begin_with_locks<Stamp, 1>(first, second, call_word);
  }
  return is_equal(number, ready_at - ARCTRACE_SHIM_READY_WITH_LOCKS(0, 2)) &&
         begin_with_locks<Stamp, 2>(first, second, call_word);
}

// Begin a call by the filter that is in force, by the clock word, or on the stub's slow
// path. Stubs call them with any alignment of the stack.
ARCTRACE_KEEPS_REGISTERS __attribute__((noinline, force_align_arg_pointer)) void
begin_otherwise(const uintptr_t* call_word, volatile uintptr_t* returns_to) {
  const auto& call = *reinterpret_cast<const arctrace_shim_stub_call*>(*call_word);
  return_as(begin_filtered_stub_call(call, call_word + 1), returns_to);
}
ARCTRACE_KEEPS_REGISTERS __attribute__((noinline, force_align_arg_pointer)) void
begin_unready(uintptr_t first, uintptr_t second, const uintptr_t* call_word,
              volatile uintptr_t* returns_to) {
  const auto& call = *reinterpret_cast<const arctrace_shim_stub_call*>(*call_word);
  FilteredEntry entry = FilteredEntry::kUndone;
  if (filtered_path_is_open()) {
    const uintptr_t arguments[] = {first, second};
    entry = begin_filtered_stub_call(call, call_word + 1, arguments);
  } else if (word_path_is_open<ARCTRACE_GATE_FUNCTIONS>()) {
    const uint32_t ready_at = __atomic_load_n(&call.ready_at, __ATOMIC_ACQUIRE);
    const volatile uint32_t& number = current_word_gate().live_filter_number;
    if (begin_if_ready_with_locks<WordStamp>(number, ready_at, first, second,
                                             call_word)) {
      entry = FilteredEntry::kAdded;
    }
  }
  return_as(entry, returns_to);
}

// Ends a call by the filter. False: nothing was done.
ARCTRACE_KEEPS_REGISTERS __attribute__((noinline, force_align_arg_pointer)) bool
end_by_filter(uintptr_t* return_slot) {
  return end_filtered_call(return_slot);
}

ARCTRACE_KEEPS_REGISTERS __attribute__((noinline, force_align_arg_pointer)) void
end_slowly(uintptr_t* return_slot) {
  call_ended_slow(return_slot, return_slot[ARCTRACE_SHIM_RETURNED_RESULT]);
}

template <class Stamp>
ARCTRACE_KEEPS_REGISTERS __attribute__((noinline, flatten)) bool end_in_chain(
    uintptr_t* return_slot, ThreadState& state) {
  return call_ended_fast(KnownSharedBlock<Stamp>{state}, return_slot);
}

// The return slot is kWords words above the stack pointer at the call of the function
// into which this is inlined. It is found anew at each use, in the same way.
template <int kWords>
struct OwnReturnSlot {
  // The address for comparisons, in a register that is free after them.
  __attribute__((always_inline)) uintptr_t* compared() const {
    return reinterpret_cast<uintptr_t*>(address_anew(stored()));
  }
  __attribute__((always_inline)) uintptr_t* stored() const {
    return reinterpret_cast<uintptr_t*>(frame_end()) + kWords;
  }
};

// For the function into which this is inlined. False: nothing was done. REQUIRES: what
// the Stamp does.
template <class Stamp, int kWords>
__attribute__((always_inline)) inline bool end_by(OwnReturnSlot<kWords> return_slot) {
  const auto block = own_block<Stamp>([&](ThreadState& state) ARCTRACE_INLINED {
    return end_in_chain<Stamp>(return_slot.stored(), state);
  });
  return call_ended_fast(block, AtStackPointer{}, return_slot);
}

template <int kWords>
__attribute__((always_inline)) inline bool end_call(OwnReturnSlot<kWords> return_slot) {
  if (__builtin_expect(fast_path_is_open<ARCTRACE_GATE_FUNCTIONS>() &&
                           end_by<CounterStamp>(return_slot),
                       1)) {
    return true;
  }
  return word_path_is_open<ARCTRACE_GATE_FUNCTIONS>() && end_by<WordStamp>(return_slot);
}

// The same for its begin.
template <class Stamp>
__attribute__((always_inline)) inline bool begin_by() {
  const EnteredKey key{entered_call_word()};
  const uintptr_t* return_slot = entered_call_word() + 1;
  const auto block = own_block<Stamp>([&](ThreadState& state) ARCTRACE_INLINED {
    return begin_in_chain<Stamp>(key, return_slot, state);
  });
  return call_began_fast(block, key, {return_slot, 0, 0});
}

}  // namespace

ARCTRACE_KEEPS_REGISTERS ARCTRACE_SHIM_NO_LANDING_PAD __attribute__((flatten)) void
arctrace_shim_call_entered(uintptr_t first, uintptr_t second) {
  const auto& call =
      *reinterpret_cast<const arctrace_shim_stub_call*>(*entered_call_word());
  // Acquire: the target and the key are those that the shim stored before.
  const uint32_t ready_at = __atomic_load_n(&call.ready_at, __ATOMIC_ACQUIRE);
  const volatile FastGate& gate = current_fast_gate();
  if (__builtin_expect(!is_equal(gate.live_filter_number, ready_at), 0)) {
    if (!fast_path_is_open<ARCTRACE_GATE_FUNCTIONS>(gate)) {
      return begin_unready(first, second, entered_call_word(), own_return_address());
    }
    if (begin_if_ready_with_locks<CounterStamp>(gate.live_filter_number, ready_at, first,
                                                second, entered_call_word())) {
      return;
    }
    return return_as(FilteredEntry::kUndone, own_return_address());
  }
  if (__builtin_expect(
          fast_path_is_open<ARCTRACE_GATE_FUNCTIONS>(gate) && begin_by<CounterStamp>(),
          1)) {
    return;
  }
  const volatile FastGate& word = current_word_gate();
  if (has_any_bit<ARCTRACE_GATE_FUNCTIONS>(word.gate) &&
      is_equal(word.live_filter_number, ready_at) && begin_by<WordStamp>()) {
    return;
  }
  if (!filtered_path_is_open()) {
    return return_as(FilteredEntry::kUndone, own_return_address());
  }
  if (call_may_be_left_out(entered_call_word()) &&
      call_is_left_out(entered_call_word())) {
    return return_as(FilteredEntry::kLeftOut, own_return_address());
  }
  begin_otherwise(entered_call_word(), own_return_address());
}

ARCTRACE_KEEPS_REGISTERS ARCTRACE_SHIM_NO_LANDING_PAD __attribute__((flatten)) void
arctrace_shim_call_returned(void) {
  constexpr OwnReturnSlot<ARCTRACE_SHIM_RETURNED_WORDS> kReturnSlot;
  if (__builtin_expect(end_call(kReturnSlot), 1)) return;
  end_slowly(kReturnSlot.stored());
}

ARCTRACE_KEEPS_REGISTERS ARCTRACE_SHIM_NO_LANDING_PAD __attribute__((flatten)) void
arctrace_shim_call_ends(void) {
  constexpr OwnReturnSlot<-1> kReturnSlot;
  if (__builtin_expect(end_call(kReturnSlot), 1)) return;
  if (filtered_path_is_open() && end_by_filter(kReturnSlot.stored())) return;
  *own_return_address() = stub_block + ARCTRACE_SHIM_ENDS_SLOWLY_AT;
}
