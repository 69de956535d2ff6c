#include "src/stack/pending_calls.hpp"

namespace arctrace {

uint64_t first_return_stack;

namespace {

void fence() { std::atomic_signal_fence(std::memory_order_seq_cst); }

}  // namespace

bool ReturnStack::push_slowly(const ThreadStacks& stacks, PendingCall call, bool inside) {
  const FramePlace now(call.place);
  uint64_t at = depth;
  for (; at > 0; --at) {
    const uintptr_t place = calls[at - 1].place;
    const bool is_left = place == 0 || (place == call.place && !inside) ||
                         lies_below(stacks, FramePlace(place), now);
    if (!is_left) break;
  }
  if (__builtin_expect(at == kMaxCalls, 0)) {
    // All of it is still open, as far as one can see: most likely it was so before.
    if (calls[at - 1].place == full_top) return false;
    compact();
    at = depth;
    if (at == kMaxCalls) {
      full_top = calls[at - 1].place;
      return false;
    }
  }
  store(at, call);
  return true;
}

PendingCall* ReturnStack::find(uintptr_t place) {
  for (uint64_t i = depth; i > 0; --i) {
    if (calls[i - 1].place == place) return &calls[i - 1];
  }
  return nullptr;
}

void ReturnStack::drop(const ThreadStacks& stacks, uintptr_t place) {
  for (uint64_t i = depth; i > 0 && calls[i - 1].place != place; --i) {
    PendingCall& call = calls[i - 1];
    if (call.place != 0 &&
        lies_below(stacks, FramePlace(call.place), FramePlace(place))) {
      call.place = 0;
    }
  }
  drop_from_afar(place);
  trim(depth);
}

void ReturnStack::drop_from_afar(uintptr_t place) {
  full_top = 0;
  PendingCall* call = find(place);
  while (call != nullptr) {
    PendingCall* outer = next_at(call);
    IpcAtomics::store_relaxed(call->place, uintptr_t{0});
    call = outer;
  }
}

void ReturnStack::drop_own() {
  full_top = 0;
  for (uint64_t i = 0; i < depth; ++i) {
    // The others stay where they are: one may just be looked for.
    if (own.low == own.high || own.contains(calls[i].place)) calls[i].place = 0;
  }
  trim(depth);
}

// Coroutines that never come back leave calls that nothing above them drops: where two
// stand at one place and return to different ones, the outer is gone. Handlers that find
// us at it have no room, so they change nothing here.
void ReturnStack::compact() {
  if (is_compacting != 0) return;
  is_compacting = 1;
  fence();
  uint64_t kept = 0;
  for (uint64_t i = 0; i < depth; ++i) {
    const PendingCall& call = calls[i];
    bool is_gone = call.place == 0;
    for (uint64_t j = i + 1; j < depth && !is_gone; ++j) {
      is_gone =
          calls[j].place == call.place && calls[j].return_address != call.return_address;
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

void link_return_stack(ReturnStack& stack) {
  const auto address = static_cast<uint64_t>(reinterpret_cast<uintptr_t>(&stack));
  uint64_t first = IpcAtomics::load_acquire(first_return_stack);
  do {
    stack.next = first;
  } while (!IpcAtomics::compare_exchange_acq_rel(first_return_stack, first, address));
}

}  // namespace arctrace
