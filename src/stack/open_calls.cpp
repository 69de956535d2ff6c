// Drops, moves and finds pending calls, and links those of all threads.
#include "src/stack/open_calls.hpp"

#include "src/stack/call_edges.hpp"

namespace arctrace::writer {

uintptr_t stub_block;
PendingCallsEnd pending_calls_end{
    0, reinterpret_cast<uintptr_t>(&pending_calls_end.none), {}, {}};
uint64_t first_pending_calls = reinterpret_cast<uintptr_t>(&pending_calls_end);

namespace {

void fence() { std::atomic_signal_fence(std::memory_order_seq_cst); }

// Whether the call's return address is no longer in its slot, as far as that is known.
bool is_overwritten(const StackRange& own, const PendingCall& call) {
  if (stub_block == 0 || !own.contains(call.return_slot)) return false;
  const uintptr_t found = *reinterpret_cast<const uintptr_t*>(call.return_slot);
  return !is_stub_return(found);
}

// Drops another thread's call, unless that thread has used the entry for another one
// since it was found. False: it has.
bool drop_found(PendingCall& call, uintptr_t return_slot) {
  return IpcAtomics::compare_exchange_acq_rel(call.return_slot, return_slot,
                                              uintptr_t{0});
}

// Puts `node` at the beginning of a list whose head is `first`.
template <class Node>
void link(uint64_t& first, Node& node) {
  const auto address = static_cast<uint64_t>(reinterpret_cast<uintptr_t>(&node));
  uint64_t next = IpcAtomics::load_acquire(first);
  do {
    node.next = next;
  } while (!IpcAtomics::compare_exchange_acq_rel(first, next, address));
}

}  // namespace

void AbandonedCalls::add(const StackRange& own, const PendingCall& call) {
  if (is_overwritten(own, call)) return;
  PendingCall* to = find(call.return_slot);
  for (uint32_t i = 0; i < kProbes && to == nullptr; ++i) {
    PendingCall& entry = probe(call.return_slot, i);
    if (entry.return_slot == 0 || is_overwritten(own, entry)) to = &entry;
  }
  if (to == nullptr) to = &probe(call.return_slot, ++replaced % kProbes);
  to->return_slot = 0;  // so unwinders do not find it while it is half written
  fence();
  to->return_address = call.return_address;
  to->key = call.key;
  fence();
  to->return_slot = call.return_slot;
  IpcAtomics::store_relaxed(top, address_of(calls[kEntries - 1]));
}

PendingCall* AbandonedCalls::find(uintptr_t return_slot) {
  if (!was_used()) return nullptr;
  for (uint32_t i = 0; i < kProbes; ++i) {
    PendingCall& entry = probe(return_slot, i);
    if (entry.return_slot == return_slot) return &entry;
  }
  return nullptr;
}

void AbandonedCalls::clear() {
  if (!was_used()) return;
  for (PendingCall& entry : calls) entry.return_slot = 0;
  IpcAtomics::store_relaxed(top, address_of(none));
}

bool PendingCalls::push_slow(const ThreadStacks& stacks, PendingCall call, bool inside) {
  const MachineFrame now(call.return_slot);
  const auto is_replaced = [&](uintptr_t return_slot) {
    return return_slot == call.return_slot && !inside;
  };
  const uint64_t in_use = count();
  uint64_t at = in_use;
  for (; at > 0; --at) {
    const uintptr_t return_slot = calls[at - 1].return_slot;
    if (return_slot == 0 || is_replaced(return_slot)) continue;
    if (!lies_below(stacks, MachineFrame(return_slot), now)) break;
  }
  if (at > 0 && calls[at - 1].return_slot < call.return_slot) is_mixed = 1;
  leave(stacks.own, at, in_use,
        [&](uintptr_t return_slot) { return !is_replaced(return_slot); });
  if (__builtin_expect(at == kMaxCalls, 0)) {
    // All calls are still open, as far as one can see: most likely it was so before.
    if (calls[at - 1].return_slot == full_top) return false;
    compact();
    at = count();
    if (at == kMaxCalls) {
      full_top = calls[at - 1].return_slot;
      return false;
    }
  }
  store(calls[at], call);
  return true;
}

// The order is from the outside in, so that of two calls with the same slot the later one
// is kept. Of calls that ended with a jump to the next the first one is kept. A call that
// is older than a moved one, and has its slot, is over, although nothing has dropped it:
// among the pending calls it would be found in place of the moved one.
template <class IsAbandoned>
void PendingCalls::leave(const StackRange& stack, uint64_t from, uint64_t to,
                         const IsAbandoned& is_abandoned) {
  PendingCall previous{};
  for (uint64_t i = from; i < to; ++i) {
    const PendingCall call = calls[i];
    if (call.return_slot == 0 || !is_abandoned(call.return_slot)) continue;
    if (call.return_slot != previous.return_slot ||
        call.return_address != previous.return_address) {
      abandoned.add(stack, call);
      for (uint64_t j = 0; is_mixed != 0 && j < from; ++j) {
        if (calls[j].return_slot == call.return_slot) calls[j].return_slot = 0;
      }
    }
    calls[i].return_slot = 0;
    previous = call;
  }
}

PendingCall* PendingCalls::find(uintptr_t return_slot) {
  for (uint64_t i = count(); i > 0; --i) {
    if (calls[i - 1].return_slot == return_slot) return &calls[i - 1];
  }
  return nullptr;
}

void PendingCalls::drop(const ThreadStacks& stacks, uintptr_t return_slot) {
  const uint64_t in_use = count();
  uint64_t from = in_use;
  while (from > 0 && calls[from - 1].return_slot != return_slot) --from;
  leave(stacks.own, from, in_use, [&](uintptr_t inner) {
    const bool is_abandoned =
        lies_below(stacks, MachineFrame(inner), MachineFrame(return_slot));
    if (!is_abandoned) is_mixed = 1;
    return is_abandoned;
  });
  drop_from_afar(return_slot);
  trim(count());
}

void PendingCalls::drop_from_afar(uintptr_t return_slot) {
  full_top = 0;
  PendingCall* call = find(return_slot);
  while (call != nullptr) {
    PendingCall* outer = next_at(call);
    drop_found(*call, return_slot);
    call = outer;
  }
}

void PendingCalls::take_over(PendingCalls& from, const StackRange& stack,
                             uintptr_t goes_on) {
  const uintptr_t innermost_slot = goes_on - sizeof(uintptr_t);
  const uint64_t in_use = from.count();
  for (uint64_t i = 0; i < in_use; ++i) {
    const uintptr_t return_slot = IpcAtomics::load_acquire(from.calls[i].return_slot);
    if (!stack.contains(return_slot)) continue;
    const bool is_open = return_slot == innermost_slot ? find(innermost_slot) == nullptr
                                                       : return_slot > innermost_slot;
    if (is_open) {
      if (count() == kMaxCalls) return;
      PendingCall call = from.calls[i];
      call.return_slot = return_slot;
      add(call);
    }
    // If the other thread has used the entry meanwhile, the copy may have parts of both.
    if (!drop_found(from.calls[i], return_slot) && is_open) drop_top();
  }
}

void PendingCalls::leave_unrecorded() {
  for (uint64_t i = 0; i < count(); ++i) {
    calls[i].key = PendingCall::kNotRecorded;
  }
  if (!abandoned.was_used()) return;
  for (PendingCall& call : abandoned.calls) call.key = PendingCall::kNotRecorded;
}

void PendingCalls::drop_own() {
  full_top = 0;
  for (uint64_t i = 0; i < count(); ++i) {
    // The other calls stay where they are, because another thread may be searching for
    // one.
    if (own.low == own.high || own.contains(calls[i].return_slot))
      calls[i].return_slot = 0;
  }
  trim(count());
  abandoned.clear();
}

// Coroutines that never come back leave calls that no later call drops: if two have the
// same return slot and return to different addresses, the outer one is gone. Signal
// handlers that interrupt this find no space, so they change nothing here.
void PendingCalls::compact() {
  if (is_compacting != 0) return;
  is_compacting = 1;
  fence();
  uint64_t kept = 0;
  for (uint64_t i = 0; i < count(); ++i) {
    const PendingCall& call = calls[i];
    bool is_gone = call.return_slot == 0;
    for (uint64_t j = i + 1; j < count() && !is_gone; ++j) {
      is_gone = calls[j].return_slot == call.return_slot &&
                calls[j].return_address != call.return_address;
    }
    if (is_gone) continue;
    calls[kept] = call;
    ++kept;
  }
  fence();
  set_count(kept);
  fence();
  is_compacting = 0;
}

void set_stub_block(uintptr_t block) { stub_block = block; }

void link_pending_calls(PendingCalls& calls) {
  link(pending_calls_end.next, calls.abandoned);
  link(first_pending_calls, calls);
}

}  // namespace arctrace::writer
