#include "src/stack/pending_calls.hpp"

#include "src/stack/machine_frame.hpp"

namespace arctrace {

uint64_t first_pending_calls;

namespace {

void fence() { std::atomic_signal_fence(std::memory_order_seq_cst); }

}  // namespace

bool PendingCalls::push_slow(const ThreadStacks& stacks, PendingCall call, bool inside) {
  const MachineFrame now(call.return_slot);
  uint64_t at = depth;
  for (; at > 0; --at) {
    const uintptr_t return_slot = calls[at - 1].return_slot;
    const bool is_left = return_slot == 0 ||
                         (return_slot == call.return_slot && !inside) ||
                         lies_below(stacks, MachineFrame(return_slot), now);
    if (!is_left) break;
  }
  if (__builtin_expect(at == kMaxCalls, 0)) {
    // All of it is still open, as far as one can see: most likely it was so before.
    if (calls[at - 1].return_slot == full_top) return false;
    compact();
    at = depth;
    if (at == kMaxCalls) {
      full_top = calls[at - 1].return_slot;
      return false;
    }
  }
  store(at, call);
  return true;
}

PendingCall* PendingCalls::find(uintptr_t return_slot) {
  for (uint64_t i = depth; i > 0; --i) {
    if (calls[i - 1].return_slot == return_slot) return &calls[i - 1];
  }
  return nullptr;
}

void PendingCalls::drop(const ThreadStacks& stacks, uintptr_t return_slot) {
  for (uint64_t i = depth; i > 0 && calls[i - 1].return_slot != return_slot; --i) {
    PendingCall& call = calls[i - 1];
    if (call.return_slot != 0 &&
        lies_below(stacks, MachineFrame(call.return_slot), MachineFrame(return_slot))) {
      call.return_slot = 0;
    }
  }
  drop_from_afar(return_slot);
  trim(depth);
}

void PendingCalls::drop_from_afar(uintptr_t return_slot) {
  full_top = 0;
  PendingCall* call = find(return_slot);
  while (call != nullptr) {
    PendingCall* outer = next_at(call);
    IpcAtomics::store_relaxed(call->return_slot, uintptr_t{0});
    call = outer;
  }
}

void PendingCalls::drop_own() {
  full_top = 0;
  for (uint64_t i = 0; i < depth; ++i) {
    // The others stay where they are: one may just be looked for.
    if (own.low == own.high || own.contains(calls[i].return_slot))
      calls[i].return_slot = 0;
  }
  trim(depth);
}

// Coroutines that never come back leave calls that nothing above them drops: if two have
// the same return slot and return to different addresses, the outer one is gone. Signal
// handlers that interrupt this find no room, so they change nothing here.
void PendingCalls::compact() {
  if (is_compacting != 0) return;
  is_compacting = 1;
  fence();
  uint64_t kept = 0;
  for (uint64_t i = 0; i < depth; ++i) {
    const PendingCall& call = calls[i];
    bool is_gone = call.return_slot == 0;
    for (uint64_t j = i + 1; j < depth && !is_gone; ++j) {
      is_gone = calls[j].return_slot == call.return_slot &&
                calls[j].return_address != call.return_address;
    }
    if (is_gone) continue;
    calls[kept] = call;
    ++kept;
  }
  fence();
  depth = kept;
  fence();
  is_compacting = 0;
}

void link_pending_calls(PendingCalls& calls) {
  const auto address = static_cast<uint64_t>(reinterpret_cast<uintptr_t>(&calls));
  uint64_t first = IpcAtomics::load_acquire(first_pending_calls);
  do {
    calls.next = first;
  } while (!IpcAtomics::compare_exchange_acq_rel(first_pending_calls, first, address));
}

}  // namespace arctrace
