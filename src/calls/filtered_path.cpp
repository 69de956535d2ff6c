// Calls through the shim's stubs, and frames of the API, while a call filter is in force.
#include "src/calls/filtered_path.hpp"

#include "src/stack/abandoned_frames.hpp"

namespace arctrace::writer {
namespace {

// Each of the functions below has a form for the clock word, which is out of line, so
// that the form for the counter saves no more registers.

// Begins a call in the usual way: as call_began_fast(), by the filter.
template <class Stamp, class Locks>
__attribute__((always_inline)) inline FilteredEntry begin_by(uint64_t key,
                                                             const StubCall& call,
                                                             const Locks& locks) {
  // The flags are by the live filter that was in force a moment ago.
  if ((call.flags & ARCTRACE_SHIM_RETURNS_TO_SHIM) != 0 ||
      !filtered_path_is_open_by(IpcAtomics::load_relaxed(call_filter.number))) {
    return FilteredEntry::kUndone;
  }
  const uintptr_t return_address = *call.return_slot;
  return enter_filtered_usual<Stamp>(
      key, call.here(), HiddenFrames::kNone,
      [&](const ThreadState& state, const OpenFrame* to) ARCTRACE_INLINED {
        PendingCalls* calls = thread_local_state.calls;
        return calls != nullptr &&
               (is_known_stub_call(state, to, call, return_address) ||
                is_known_stub_call_in_found(state, to, call, return_address)) &&
               calls->has_space_inside(thread_local_state.stacks, call.here());
      },
      [&]() ARCTRACE_INLINED { return call.flags; },
      [&]() ARCTRACE_INLINED {
        // The pending call is added as the frame is stored: a handler that jumps away
        // leaves neither or both.
        thread_local_state.calls->add({call.here(), return_address, key});
        return call.frame(return_address);
      },
      locks);
}

template <class Locks>
__attribute__((noinline)) FilteredEntry begin_by_word(uint64_t key, const StubCall& call,
                                                      const Locks& locks) {
  return begin_by<WordStamp>(key, call, locks);
}

template <class Locks>
__attribute__((always_inline)) inline FilteredEntry begin(uint64_t key,
                                                          const StubCall& call,
                                                          const Locks& locks) {
  if (has_bare_heads()) return begin_by_word(key, call, locks);
  return begin_by<CounterStamp>(key, call, locks);
}

template <class Stamp>
__attribute__((always_inline)) inline bool end_by(uintptr_t* return_slot) {
  PendingCalls* const calls = thread_local_state.calls;
  const auto here = reinterpret_cast<uintptr_t>(return_slot);
  const PendingCall* top = nullptr;
  return exit_filtered_usual<Stamp>(
      here,
      [&](const ThreadState& /*state*/, const OpenFrame& innermost) ARCTRACE_INLINED {
        if (calls == nullptr) return false;
        top = calls->top_at(here);
        return top != nullptr && innermost.key == top->key &&
               innermost.frame.stack_pointer == low_half(here);
      },
      [&]() ARCTRACE_INLINED { end_innermost_call(*calls, *top, return_slot); });
}

__attribute__((noinline)) bool end_by_word(uintptr_t* return_slot) {
  return end_by<WordStamp>(return_slot);
}

template <class Stamp>
__attribute__((always_inline)) inline bool enter_frame_by(uint64_t key, uintptr_t cfa,
                                                          uintptr_t here) {
  const uint32_t flags = named_frame_flags(key);
  if (!filtered_path_is_open_by(IpcAtomics::load_relaxed(call_filter.number))) {
    return false;
  }
  MachineFrame frame(cfa);
  frame.flags = flags;
  const FilteredEntry entry = enter_filtered_usual<Stamp>(
      key, here, HiddenFrames::kAlways,
      [&](const ThreadState& state, const OpenFrame* to)
          ARCTRACE_INLINED { return is_known_frame(state, to, frame); },
      [&]() ARCTRACE_INLINED { return flags; }, [&]() ARCTRACE_INLINED { return frame; });
  return entry != FilteredEntry::kUndone;
}

__attribute__((noinline)) bool enter_frame_by_word(uint64_t key, uintptr_t cfa,
                                                   uintptr_t here) {
  return enter_frame_by<WordStamp>(key, cfa, here);
}

template <class Stamp>
__attribute__((always_inline)) inline bool exit_frame_by(uint64_t key, uintptr_t here) {
  return exit_filtered_usual<Stamp>(
      here,
      [&](const ThreadState& /*state*/, const OpenFrame& innermost)
          ARCTRACE_INLINED { return innermost.key == key; },
      []() ARCTRACE_INLINED {});
}

__attribute__((noinline)) bool exit_frame_by_word(uint64_t key, uintptr_t here) {
  return exit_frame_by<WordStamp>(key, here);
}

}  // namespace

FilteredEntry begin_filtered_call(uint64_t key, const StubCall& call) {
  return begin(key, call, NoLocks{});
}

FilteredEntry begin_filtered_lock_call(uint64_t key, const StubCall& call, uint32_t locks,
                                       const uintptr_t* arguments) {
  if (locks == 1) return begin(key, call, CallLocks<1>{{arguments[0]}});
  if (locks == 2) return begin(key, call, CallLocks<2>{{arguments[0], arguments[1]}});
  return FilteredEntry::kUndone;
}

FilteredEntry begin_filtered_stub_call(const arctrace_shim_stub_call& call,
                                       const uintptr_t* return_slot,
                                       const uintptr_t* arguments) {
  // Acquire: key and flags are those that the shim stored before.
  const uint32_t ready_at = __atomic_load_n(&call.ready_at, __ATOMIC_ACQUIRE);
  const uint32_t number = IpcAtomics::load_relaxed(call_filter.number);
  const uint64_t key = __atomic_load_n(&call.key, __ATOMIC_RELAXED);
  const StubCall stub_call{return_slot, 0,
                           __atomic_load_n(&call.filter, __ATOMIC_RELAXED)};
  if (ready_at == number) return begin(key, stub_call, NoLocks{});
  for (uint32_t locks = 1; arguments != nullptr && locks <= 2; ++locks) {
    if (ready_at == ARCTRACE_SHIM_READY_WITH_LOCKS(number, locks)) {
      return begin_filtered_lock_call(key, stub_call, locks, arguments);
    }
  }
  return FilteredEntry::kUndone;
}

bool end_filtered_call(uintptr_t* return_slot) {
  if (has_bare_heads()) return end_by_word(return_slot);
  return end_by<CounterStamp>(return_slot);
}

bool enter_filtered_frame(uint64_t key, uintptr_t cfa, uintptr_t here) {
  if (has_bare_heads()) return enter_frame_by_word(key, cfa, here);
  return enter_frame_by<CounterStamp>(key, cfa, here);
}

bool exit_filtered_frame(uint64_t key, uintptr_t here) {
  if (has_bare_heads()) return exit_frame_by_word(key, here);
  return exit_frame_by<CounterStamp>(key, here);
}

}  // namespace arctrace::writer
