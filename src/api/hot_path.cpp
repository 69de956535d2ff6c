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

__attribute__((flatten)) void arctrace_enter(uint64_t frame_key) {
  if (is_recorded(ARCTRACE_GATE_FUNCTIONS)) record_enter(frame_key, uintptr_t{0});
}

__attribute__((flatten)) void arctrace_enter_at(uint64_t frame_key, uintptr_t location) {
  if (is_recorded(ARCTRACE_GATE_FUNCTIONS)) record_enter(frame_key, location);
}

__attribute__((flatten)) void arctrace_exit(uint64_t frame_key) {
  if (is_recorded(ARCTRACE_GATE_FUNCTIONS)) record_exit(frame_key, 0, stack_pointer());
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

__attribute__((flatten)) void arctrace_shim_enter(uint64_t frame_key,
                                                  const struct arctrace_shim_call* call) {
  if (is_recorded(ARCTRACE_GATE_FUNCTIONS)) record_enter(frame_key, *call);
}

__attribute__((flatten)) int arctrace_shim_exit(uint64_t frame_key,
                                                uintptr_t stack_pointer) {
  if (!is_recorded(ARCTRACE_GATE_FUNCTIONS)) return 1;
  return record_innermost_exit(frame_key, stack_pointer) ? 1 : 0;
}

void arctrace_shim_exit_at(uint64_t frame_key, uintptr_t location,
                           uintptr_t stack_pointer) {
  if (is_recorded(ARCTRACE_GATE_FUNCTIONS)) {
    record_exit(frame_key, location, stack_pointer);
  }
}

int arctrace_shim_call_begin(uint64_t frame_key, const uintptr_t* return_slot,
                             uintptr_t frame_pointer, uint32_t flags) {
  return call_began(frame_key, return_slot, frame_pointer, flags);
}

void arctrace_shim_call_end(uintptr_t* return_slot, uintptr_t result) {
  call_ended(return_slot, result);
}
