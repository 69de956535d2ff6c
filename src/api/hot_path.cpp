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

using namespace arctrace;  // the C functions below are the namespace's face

namespace {

// Out of line, so that the functions below save no registers for it.
__attribute__((noinline)) void enter_unless_closed(uint64_t key, uintptr_t location,
                                                   uintptr_t here) {
  if (!is_recorded(ARCTRACE_GATE_FUNCTIONS)) return;
  arctrace_shim_call call{};
  call.location = location;
  enter_slow(key, call, here, nullptr);
}

__attribute__((always_inline)) inline void enter(uint64_t key, uintptr_t location) {
  const uintptr_t here = stack_pointer();
  if (__builtin_expect(fast_path_is_open(ARCTRACE_GATE_FUNCTIONS) &&
                           enter_fast(key, MachineFrame(location), here),
                       1)) {
    return;
  }
  enter_unless_closed(key, location, here);
}

__attribute__((noinline)) void exit_unless_closed(uint64_t key, uintptr_t here) {
  if (is_recorded(ARCTRACE_GATE_FUNCTIONS)) exit_slow(key, 0, here, nullptr);
}

arctrace_shim_function_hook* slow_enter;
arctrace_shim_function_hook* slow_exit;

}  // namespace

__attribute__((flatten)) void arctrace_enter(uint64_t frame_key) { enter(frame_key, 0); }

__attribute__((flatten)) void arctrace_enter_at(uint64_t frame_key, uintptr_t location) {
  enter(frame_key, location);
}

__attribute__((flatten)) void arctrace_exit(uint64_t frame_key) {
  const uintptr_t here = stack_pointer();
  if (__builtin_expect(
          fast_path_is_open(ARCTRACE_GATE_FUNCTIONS) &&
              exit_fast(frame_key, here, [](const MachineFrame&) { return true; }),
          1)) {
    return;
  }
  exit_unless_closed(frame_key, here);
}

void arctrace_write(uint32_t event, const void* payload, size_t size) {
  if (!is_recorded(ARCTRACE_GATE_EVENTS)) return;
  const WriterCall writer_call;
  if (writer_call.refuses_record()) return;
  const uint64_t ticks = session_ticks();
  if (__builtin_expect(size > ARCTRACE_PAYLOAD_MAX, 0)) {
    reserve_impossible(writer_call, ticks);
    return;
  }
  const auto length = static_cast<uint32_t>(size);
  const uint32_t padded = padded_size(length);
  constexpr uint32_t kEventSize = sizeof(arctrace_event_body);
  write_record(writer_call, ARCTRACE_TYPE_EVENT, kEventSize + padded, ticks,
               [&](std::byte* body) {
                 std::byte* to = body + kEventSize;
                 if (padded != length) word_at(to + padded - sizeof(uint32_t)) = 0;
                 part_at<arctrace_event_body>(body).event = event;
                 copy_bytes(to, payload, length);
               });
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
  if (__builtin_expect(
          fast_path_is_open(ARCTRACE_GATE_FUNCTIONS) && *live_filter_number == 0 &&
              enter_hooked_fast(function,
                                {call_site, stack_pointer, frame_pointer, hook_site}),
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
  // A hook that returns to its function's caller was jumped to, as that function's last
  // act, when its frame was gone.
  const bool is_jump = hook_site == call_site;
  const auto is_left = [=](const MachineFrame& frame) {
    return is_jump ? frame.location == stack_pointer
                   : frame.stack_pointer == low_half(stack_pointer);
  };
  if (__builtin_expect(fast_path_is_open(ARCTRACE_GATE_FUNCTIONS) &&
                           exit_fast(function, stack_pointer, is_left),
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

int arctrace_shim_call_begin(uint64_t frame_key, const uintptr_t* return_slot,
                             uintptr_t frame_pointer, uint32_t flags) {
  return call_began(frame_key, return_slot, frame_pointer, flags);
}

void arctrace_shim_call_end(uintptr_t* return_slot, uintptr_t result) {
  call_ended(return_slot, result);
}
