// The entry points through which nearly all records come, each with its fast path
// inlined. It is a file of its own, so that the code that the compiler generates for it
// depends on nothing else. `flatten` inlines what is not marked always_inline; slow paths
// are out of line.
#include <arctrace/arctrace.h>

#include "src/api/shim_interface.h"
#include "src/base/memory.hpp"
#include "src/calls/call_records.hpp"
#include "src/calls/library_calls.hpp"
#include "src/process/gate.hpp"
#include "src/process/session.hpp"
#include "src/writer/record.hpp"
#include "src/writer/record_filter.hpp"

using namespace arctrace;  // the C functions below are the namespace's face

namespace {

// The slow forms are out of line, so that the functions below save no registers for them.
// So are the _in_chain forms, to which these hand over the writer call of a thread that
// has no room in a block of its own: they write into the shared chain, or take the slow
// path.

// Events with a large payload have functions of their own: the instruction that copies it
// takes registers of which the others would have to save some.
enum class Payload : uint8_t { kSmall, kLarge };

template <Payload kPayload>
__attribute__((always_inline)) inline void fill_event(std::byte* body, uint32_t event,
                                                      const void* payload,
                                                      uint32_t size) {
  constexpr uint32_t kEventSize = sizeof(arctrace_event_body);
  std::byte* to = body + kEventSize;
  const uint32_t padded = padded_size(size);
  if (padded != size) word_at(to + padded - sizeof(uint32_t)) = 0;
  part_at<arctrace_event_body>(body).event = event;
  if constexpr (kPayload == Payload::kSmall) {
    copy_few_bytes(to, payload, size);
  } else {
    copy_bytes(to, payload, size);
  }
}

// False: nothing was done.
template <Payload kPayload, class Room>
__attribute__((always_inline)) inline bool write_event_fast(const Room& room,
                                                            uint32_t event,
                                                            const void* payload,
                                                            size_t size) {
  const auto length = static_cast<uint32_t>(size);
  return room.record(
      AtStackPointer{}, ARCTRACE_TYPE_EVENT,
      static_cast<uint32_t>(sizeof(arctrace_event_body)) + padded_size(length),
      [](const ThreadState&) ARCTRACE_INLINED { return true; },
      [&](Nesting, ThreadState&, const Reservation& record) ARCTRACE_INLINED {
        fill_event<kPayload>(record.body, event, payload, length);
        commit(record);
      });
}

__attribute__((noinline)) void write_event_slow(uint32_t event, const void* payload,
                                                size_t size, uintptr_t here) {
  if (!event_is_recorded(event)) return;
  const WriterCall writer_call(here);
  if (writer_call.refuses_record()) return;
  const uint64_t ticks = session_ticks();
  if (__builtin_expect(size > ARCTRACE_PAYLOAD_MAX, 0)) {
    reserve_impossible(writer_call, ticks);
    return;
  }
  const auto length = static_cast<uint32_t>(size);
  const uint32_t body_size =
      static_cast<uint32_t>(sizeof(arctrace_event_body)) + padded_size(length);
  write_record(writer_call, ARCTRACE_TYPE_EVENT, body_size, ticks, [&](std::byte* body) {
    fill_event<Payload::kLarge>(body, event, payload, length);
  });
}

template <Payload kPayload>
__attribute__((noinline, flatten)) void write_event_in_chain(uint32_t event,
                                                             const void* payload,
                                                             size_t size,
                                                             ThreadState& state) {
  const KnownSharedBlock room{state};
  if (__builtin_expect(write_event_fast<kPayload>(room, event, payload, size), 1)) return;
  write_event_slow(event, payload, size, frame_end());
}

// REQUIRES: size <= ARCTRACE_PAYLOAD_MAX.
template <Payload kPayload>
__attribute__((always_inline)) inline void write_event(uint32_t event,
                                                       const void* payload, size_t size) {
  const OwnBlock room{[&](ThreadState& state) ARCTRACE_INLINED {
    write_event_in_chain<kPayload>(event, payload, size, state);
    return true;
  }};
  if (__builtin_expect(fast_path_is_open<ARCTRACE_GATE_EVENTS>() &&
                           write_event_fast<kPayload>(room, event, payload, size),
                       1)) {
    return;
  }
  write_event_slow(event, payload, size, frame_end());
}

__attribute__((noinline, flatten)) void write_large_event(uint32_t event,
                                                          const void* payload,
                                                          size_t size) {
  if (__builtin_expect(size > ARCTRACE_PAYLOAD_MAX, 0)) {
    write_event_slow(event, payload, size, frame_end());
  } else {
    write_event<Payload::kLarge>(event, payload, size);
  }
}

__attribute__((noinline)) void enter_unless_closed(uint64_t key, uintptr_t location,
                                                   uintptr_t here) {
  if (!is_recorded(ARCTRACE_GATE_FUNCTIONS)) return;
  arctrace_shim_call call{};
  call.location = location;
  enter_slow(key, call, here, nullptr);
}

__attribute__((noinline, flatten)) void enter_in_chain(uint64_t key, uintptr_t location,
                                                       uintptr_t here,
                                                       ThreadState& state) {
  if (__builtin_expect(
          enter_fast(KnownSharedBlock{state}, key, MachineFrame(location), here), 1)) {
    return;
  }
  enter_unless_closed(key, location, here);
}

__attribute__((always_inline)) inline void enter(uint64_t key, uintptr_t location) {
  const OwnBlock room{[&](ThreadState& state) ARCTRACE_INLINED {
    enter_in_chain(key, location, frame_end(), state);
    return true;
  }};
  if (__builtin_expect(
          fast_path_is_open<ARCTRACE_GATE_FUNCTIONS>() &&
              enter_fast(room, key, MachineFrame(location), AtStackPointer{}),
          1)) {
    return;
  }
  enter_unless_closed(key, location, frame_end());
}

constexpr auto kAnyFrame = [](const MachineFrame&) { return true; };

__attribute__((noinline)) void exit_unless_closed(uint64_t key, uintptr_t here) {
  if (is_recorded(ARCTRACE_GATE_FUNCTIONS)) exit_slow(key, 0, here, nullptr);
}

__attribute__((noinline, flatten)) void exit_in_chain(uint64_t key, uintptr_t here,
                                                      ThreadState& state) {
  if (__builtin_expect(exit_fast(KnownSharedBlock{state}, key, here, kAnyFrame), 1)) {
    return;
  }
  exit_unless_closed(key, here);
}

// REQUIRES: fast_path_is_open().
template <class Room>
__attribute__((always_inline)) inline bool exit_hooked_fast(const Room& room,
                                                            uint64_t key,
                                                            const HookCall& call) {
  // A hook that returns to its function's caller was jumped to, as that function's last
  // act, when its frame was gone.
  const bool is_jump = call.hook_site == call.call_site;
  const auto is_left = [=](const MachineFrame& frame) ARCTRACE_INLINED {
    if (__builtin_expect(is_jump, 1)) return frame.location == call.stack_pointer;
    return frame.stack_pointer == low_half(call.stack_pointer);
  };
  return exit_fast(room, key, call.stack_pointer, is_left);
}

// The locks of a stub's call: its first arguments.
template <uint32_t kCount>
struct CallLocks {
  const uintptr_t* return_slot;

  static constexpr uint32_t size() { return kCount * sizeof(arctrace_lock_word); }
  __attribute__((always_inline)) void store(std::byte* to) const {
    for (uint32_t i = 0; i < kCount; ++i) {
      part_at<arctrace_lock_word>(to + i * sizeof(arctrace_lock_word)).address =
          return_slot[ARCTRACE_SHIM_STUB_ARGUMENT(static_cast<ptrdiff_t>(i))];
    }
  }
};

template <uint32_t kCount>
__attribute__((noinline, flatten)) bool begin_with_locks_in_chain(
    uint64_t key, const uintptr_t* return_slot, ThreadState& state) {
  return call_began_fast(KnownSharedBlock{state}, key, {return_slot, 0, 0},
                         CallLocks<kCount>{return_slot});
}

template <uint32_t kCount>
__attribute__((always_inline)) inline bool begin_with_locks(
    uint64_t key, const uintptr_t* return_slot) {
  const OwnBlock room{[&](ThreadState& state) ARCTRACE_INLINED {
    return begin_with_locks_in_chain<kCount>(key, return_slot, state);
  }};
  return fast_path_is_open<ARCTRACE_GATE_FUNCTIONS>() &&
         call_began_fast(room, key, {return_slot, 0, 0}, CallLocks<kCount>{return_slot});
}

// Begins a call whose entry has locks, if it is ready. Out of line, for those without.
__attribute__((noinline, flatten)) int begin_lock_call(
    const arctrace_shim_stub_call& call, const uintptr_t* return_slot,
    uint32_t ready_at) {
  const uint64_t key = __atomic_load_n(&call.key, __ATOMIC_RELAXED);
  const uint32_t number = *live_filter_number;
  if (__builtin_expect(ready_at == ARCTRACE_SHIM_READY_WITH_LOCKS(number, 1), 1)) {
    return begin_with_locks<1>(key, return_slot) ? 1 : 0;
  }
  if (ready_at != ARCTRACE_SHIM_READY_WITH_LOCKS(number, 2)) return 0;
  return begin_with_locks<2>(key, return_slot) ? 1 : 0;
}

arctrace_shim_function_hook* slow_enter;
arctrace_shim_function_hook* slow_exit;

__attribute__((noinline, flatten)) void enter_hooked_in_chain(
    uintptr_t function, uintptr_t call_site, uintptr_t stack_pointer,
    uintptr_t frame_pointer, uintptr_t hook_site, ThreadState& state) {
  const HookCall call{call_site, stack_pointer, frame_pointer, hook_site};
  if (enter_hooked_fast(KnownSharedBlock{state}, function, call)) return;
  slow_enter(function, call_site, stack_pointer, frame_pointer, hook_site);
}

__attribute__((noinline, flatten)) void exit_hooked_in_chain(
    uintptr_t function, uintptr_t call_site, uintptr_t stack_pointer,
    uintptr_t frame_pointer, uintptr_t hook_site, ThreadState& state) {
  const HookCall call{call_site, stack_pointer, frame_pointer, hook_site};
  if (exit_hooked_fast(KnownSharedBlock{state}, function, call)) return;
  slow_exit(function, call_site, stack_pointer, frame_pointer, hook_site);
}

}  // namespace

__attribute__((flatten)) void arctrace_enter(uint64_t frame_key) { enter(frame_key, 0); }

__attribute__((flatten)) void arctrace_enter_at(uint64_t frame_key, uintptr_t location) {
  enter(frame_key, location);
}

__attribute__((flatten)) void arctrace_exit(uint64_t frame_key) {
  const OwnBlock room{[&](ThreadState& state) ARCTRACE_INLINED {
    exit_in_chain(frame_key, frame_end(), state);
    return true;
  }};
  if (__builtin_expect(fast_path_is_open<ARCTRACE_GATE_FUNCTIONS>() &&
                           exit_fast(room, frame_key, AtStackPointer{}, kAnyFrame),
                       1)) {
    return;
  }
  exit_unless_closed(frame_key, frame_end());
}

__attribute__((flatten)) void arctrace_write(uint32_t event, const void* payload,
                                             size_t size) {
  if (__builtin_expect(size >= kLargeCopy, 0)) {
    write_large_event(event, payload, size);
  } else {
    write_event<Payload::kSmall>(event, payload, size);
  }
}

void arctrace_shim_set_slow_hooks(arctrace_shim_function_hook* enter,
                                  arctrace_shim_function_hook* exit) {
  slow_enter = enter;
  slow_exit = exit;
}

__attribute__((flatten)) void arctrace_shim_function_enter(uintptr_t function,
                                                           uintptr_t call_site,
                                                           uintptr_t stack_pointer,
                                                           uintptr_t frame_pointer,
                                                           uintptr_t hook_site) {
  const HookCall call{call_site, stack_pointer, frame_pointer, hook_site};
  const OwnBlock room{[&](ThreadState& state) ARCTRACE_INLINED {
    enter_hooked_in_chain(function, call_site, stack_pointer, frame_pointer, hook_site,
                          state);
    return true;
  }};
  if (__builtin_expect(fast_path_is_open<ARCTRACE_GATE_FUNCTIONS>() &&
                           !has_live_filter() && enter_hooked_fast(room, function, call),
                       1)) {
    return;
  }
  slow_enter(function, call_site, stack_pointer, frame_pointer, hook_site);
}

__attribute__((flatten)) void arctrace_shim_function_exit(uintptr_t function,
                                                          uintptr_t call_site,
                                                          uintptr_t stack_pointer,
                                                          uintptr_t frame_pointer,
                                                          uintptr_t hook_site) {
  const HookCall call{call_site, stack_pointer, frame_pointer, hook_site};
  const OwnBlock room{[&](ThreadState& state) ARCTRACE_INLINED {
    exit_hooked_in_chain(function, call_site, stack_pointer, frame_pointer, hook_site,
                         state);
    return true;
  }};
  if (__builtin_expect(fast_path_is_open<ARCTRACE_GATE_FUNCTIONS>() &&
                           exit_hooked_fast(room, function, call),
                       1)) {
    return;
  }
  slow_exit(function, call_site, stack_pointer, frame_pointer, hook_site);
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

void arctrace_shim_exit_at(uint64_t frame_key, uintptr_t location,
                           uintptr_t stack_pointer) {
  if (is_recorded(ARCTRACE_GATE_FUNCTIONS)) {
    exit_slow(frame_key, location, stack_pointer, nullptr);
  }
}

__attribute__((flatten)) int arctrace_shim_stub_begin(
    const struct arctrace_shim_stub_call* call, const uintptr_t* return_slot) {
  // Acquire: the target and the key are those that the shim stored before.
  const uint32_t ready_at = __atomic_load_n(&call->ready_at, __ATOMIC_ACQUIRE);
  if (__builtin_expect(ready_at != *live_filter_number + 1, 0)) {
    if (!ARCTRACE_SHIM_HAS_LOCKS(ready_at)) return 0;
    return begin_lock_call(*call, return_slot, ready_at);
  }
  const bool has_begun = call_began_anywhere(
      __atomic_load_n(&call->key, __ATOMIC_RELAXED), {return_slot, 0, 0});
  return __builtin_expect(has_begun, 1) ? 1 : 0;
}

__attribute__((flatten)) int arctrace_shim_entry_begin(uint64_t frame_key,
                                                       const uintptr_t* return_slot) {
  const bool has_begun = call_began_anywhere(frame_key, {return_slot, 0, 0});
  return __builtin_expect(has_begun, 1) ? 1 : 0;
}

int arctrace_shim_call_begin(uint64_t frame_key, const uintptr_t* return_slot,
                             uintptr_t frame_pointer, uint32_t flags) {
  return call_began(frame_key, return_slot, frame_pointer, flags);
}

void arctrace_shim_call_end(uintptr_t* return_slot, uintptr_t result) {
  call_ended(return_slot, result);
}
