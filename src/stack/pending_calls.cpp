#include "src/stack/pending_calls.hpp"

#include "src/stack/machine_frame.hpp"

namespace arctrace {

uintptr_t stub_block;
constinit PendingCallsEnd pending_calls_end{};
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

// Puts `node` before the first one of a list whose head is `first`.
template <class Node>
void link(uint64_t& first, Node& node) {
  const auto address = static_cast<uint64_t>(reinterpret_cast<uintptr_t>(&node));
  uint64_t next = IpcAtomics::load_acquire(first);
  do {
    node.next = next;
  } while (!IpcAtomics::compare_exchange_acq_rel(first, next, address));
}

}  // namespace

void LeftCalls::keep(const StackRange& own, const PendingCall& call) {
  if (is_overwritten(own, call)) return;
  PendingCall* to = find(call.return_slot);
  for (uint32_t i = 0; i < kProbes && to == nullptr; ++i) {
    PendingCall& entry = probe(call.return_slot, i);
    if (entry.return_slot == 0 || is_overwritten(own, entry)) to = &entry;
  }
  if (to == nullptr) to = &probe(call.return_slot, ++replaced % kProbes);
  to->return_slot = 0;  // while the rest is written, unwinders find no half of it
  fence();
  to->return_address = call.return_address;
  to->key = call.key;
  fence();
  to->return_slot = call.return_slot;
  IpcAtomics::store_relaxed(depth, uint64_t{kEntries});
}

PendingCall* LeftCalls::find(uintptr_t return_slot) {
  if (depth == 0) return nullptr;
  for (uint32_t i = 0; i < kProbes; ++i) {
    PendingCall& entry = probe(return_slot, i);
    if (entry.return_slot == return_slot) return &entry;
  }
  return nullptr;
}

void LeftCalls::clear() {
  if (depth == 0) return;
  for (PendingCall& entry : calls) entry.return_slot = 0;
  IpcAtomics::store_relaxed(depth, uint64_t{0});
}

bool PendingCalls::push_slow(const ThreadStacks& stacks, PendingCall call, bool inside) {
  const MachineFrame now(call.return_slot);
  uint64_t at = depth;
  for (; at > 0; --at) {
    const uintptr_t return_slot = calls[at - 1].return_slot;
    if (return_slot == 0 || (return_slot == call.return_slot && !inside)) continue;
    if (!lies_below(stacks, MachineFrame(return_slot), now)) break;
    left.keep(stacks.own, calls[at - 1]);
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
  store(calls[at], at, call);
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
      left.keep(stacks.own, call);
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
    drop_found(*call, return_slot);
    call = outer;
  }
}

void PendingCalls::take_over(PendingCalls& from, const StackRange& stack,
                             uintptr_t goes_on) {
  const uintptr_t innermost_slot = goes_on - sizeof(uintptr_t);
  const uint64_t count = IpcAtomics::load_relaxed(from.depth);
  for (uint64_t i = 0; i < count; ++i) {
    const uintptr_t return_slot = IpcAtomics::load_acquire(from.calls[i].return_slot);
    if (!stack.contains(return_slot)) continue;
    const bool is_open = return_slot == innermost_slot ? find(innermost_slot) == nullptr
                                                       : return_slot > innermost_slot;
    if (is_open) {
      if (depth == kMaxCalls) return;
      PendingCall call = from.calls[i];
      call.return_slot = return_slot;
      store(*(innermost(depth) + 1), depth, call);
    }
    // If the other thread has used the entry meanwhile, the copy may have parts of both.
    if (!drop_found(from.calls[i], return_slot) && is_open) drop_top();
  }
}

void PendingCalls::leave_unrecorded() {
  for (uint64_t i = 0; i < IpcAtomics::load_relaxed(depth); ++i) {
    calls[i].key = PendingCall::kNotRecorded;
  }
  for (uint64_t i = 0; i < IpcAtomics::load_relaxed(left.depth); ++i) {
    left.calls[i].key = PendingCall::kNotRecorded;
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
  left.clear();
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
  IpcAtomics::store_relaxed(depth, kept);
  fence();
  is_compacting = 0;
}

void set_stub_block(uintptr_t block) { stub_block = block; }

void link_pending_calls(PendingCalls& calls) {
  link(pending_calls_end.next, calls.left);
  link(first_pending_calls, calls);
}

}  // namespace arctrace
