// The beginnings of a thread's calls whose duration a condition is about
// (set_call_conditions() in src/calls/call_args.hpp).
#pragma once

#include <atomic>
#include <cstdint>

namespace arctrace::writer {

// Calls that never end, because a jump has abandoned them, stay until their space is
// needed. A signal handler may begin and end calls at any instruction: at worst a time is
// lost.
struct TimedCalls {
  static constexpr uint32_t kMax = 32;

  struct Call {
    uint64_t return_slot;  // 0: free
    uint64_t began;        // ticks
  };
  Call calls[kMax];

  // Notes that a call begins. If there is no space, the call that began first is
  // forgotten.
  void begin(uintptr_t return_slot, uint64_t ticks) {
    Call* to = &calls[0];
    for (Call& call : calls) {
      if (call.return_slot == return_slot) {
        to = &call;
        break;
      }
      const bool is_better =
          to->return_slot != 0 && (call.return_slot == 0 || call.began < to->began);
      if (is_better) to = &call;
    }
    to->return_slot = 0;
    std::atomic_signal_fence(std::memory_order_seq_cst);
    to->began = ticks;
    std::atomic_signal_fence(std::memory_order_seq_cst);
    to->return_slot = return_slot;
  }

  // When the call began, in ticks; 0: not known.
  uint64_t end(uintptr_t return_slot) {
    for (Call& call : calls) {
      if (call.return_slot != return_slot) continue;
      call.return_slot = 0;
      return call.began;
    }
    return 0;
  }
};

}  // namespace arctrace::writer
