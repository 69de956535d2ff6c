// Library calls that the shim's stubs make on behalf of the program (shim_interface.h).
#include "src/api/shim_interface.h"
#include "src/calls/call_args.hpp"
#include "src/calls/call_stack.hpp"
#include "src/calls/fast_path.hpp"
#include "src/calls/vector_registers.hpp"
#include "src/stack/pending_calls.hpp"
#include "src/writer/claim_slot.hpp"
#include "src/writer/loss.hpp"

namespace arctrace {
namespace {

const arctrace_shim_values* all_values;  // set once, before a call has one

// The number of a pending call's values stands in its key, in bits that neither an
// address nor a name needs, behind one that says so.
constexpr uint64_t kValuesBit = uint64_t{1} << 61;
constexpr unsigned kValuesShift = 48;
constexpr uint64_t kValuesMask = (uint64_t{1} << (61 - kValuesShift)) - 1;
static_assert(ARCTRACE_SHIM_VALUES_MAX <= kValuesMask + 1);
static_assert((ARCTRACE_FRAME_NAME_BIT | ARCTRACE_FRAME_LIBRARY_BIT) >> 62 != 0);

// Addresses beyond those bits are given only to who asks for them (five-level paging).
bool may_have_values(uint64_t key) {
  return (key & (kValuesBit | kValuesMask << kValuesShift)) == 0;
}
uint64_t with_values(uint64_t key, uint32_t values) {
  return key | kValuesBit | uint64_t{values} << kValuesShift;
}
bool has_values(uint64_t key) { return (key & kValuesBit) != 0; }
const arctrace_shim_values& values_of(uint64_t key) {
  return all_values[key >> kValuesShift & kValuesMask];
}
uint64_t without_values(uint64_t key) {
  return key & ~(kValuesBit | kValuesMask << kValuesShift);
}

bool functions_are_recorded() { return (*arctrace_gate & ARCTRACE_GATE_FUNCTIONS) != 0; }

// Where the innermost call at `place` is kept; null: nowhere. A coroutine may return in
// another thread than it called in.
__attribute__((noinline)) ReturnStack* calls_with(uintptr_t place) {
  ReturnStack* own = thread_local_state.calls;
  if (__builtin_expect(own != nullptr && own->find(place) != nullptr, 1)) return own;
  ReturnStack* found = nullptr;
  for_each_return_stack([&](ReturnStack& stack) {
    if (found == nullptr && stack.find(place) != nullptr) found = &stack;
  });
  return found;
}

// Null: the calling thread can't have pending calls, a record is lost.
__attribute__((noinline)) ReturnStack* calls_of_new_thread() {
  attach_this_thread();
  if (thread_local_state.calls != nullptr) return thread_local_state.calls;
  count_lost_without_slot(session.view.control(), ARCTRACE_LOST_NO_SLOT);
  return nullptr;
}

__attribute__((noinline)) void record_return_with(const PendingCall& call,
                                                  uintptr_t result) {
  const arctrace_shim_values& values = values_of(call.key);
  uint64_t vectors[ARCTRACE_SHIM_VECTORS_MAX];
  if (has_vectors(values.result)) store_vectors(vectors);
  ValuesBody body;
  const uint64_t key = without_values(call.key);
  const uintptr_t location = call.place + sizeof(uintptr_t);
  if (values.result.kind != 0) {
    gather_result(values, {&result, vectors, 0}, body);
    if (record_innermost_exit_with(key, call.place, body)) return;
    record_exit_with(key, location, call.place, body);
  } else if (!record_innermost_exit(key, call.place)) {
    record_exit(key, location, call.place);
  }
}

void record_return(const PendingCall& call, uintptr_t result) {
  if (call.key == 0 || !functions_are_recorded()) return;
  if (__builtin_expect(has_values(call.key), 0)) return record_return_with(call, result);
  const uintptr_t location = call.place + sizeof(uintptr_t);
  if (!record_innermost_exit(call.key, call.place)) {
    record_exit(call.key, location, call.place);
  }
}

// What returned is not just the innermost of this thread's calls.
void end_another_call(uintptr_t* place, uintptr_t result) {
  const auto address = reinterpret_cast<uintptr_t>(place);
  ReturnStack* calls = calls_with(address);
  if (__builtin_expect(calls == nullptr, 0)) __builtin_trap();  // nowhere to go on
  const uintptr_t return_address = calls->find(address)->return_address;
  // Behind the first: those that ended with a jump to it.
  calls->for_each_at(address,
                     [result](const PendingCall& call) { record_return(call, result); });
  *place = return_address;
  std::atomic_signal_fence(std::memory_order_seq_cst);
  if (calls == thread_local_state.calls) {
    calls->drop(thread_local_state.stacks, address);
  } else {
    calls->drop_from_afar(address);
  }
}

// The innermost of the thread's calls returned to `place`.
void end_innermost_call(ReturnStack& calls, const PendingCall& call, uintptr_t* place) {
  *place = call.return_address;
  std::atomic_signal_fence(std::memory_order_seq_cst);
  calls.drop_top();
}

__attribute__((noinline)) void end_the_long_way(uintptr_t* place, uintptr_t result) {
  ReturnStack* own = thread_local_state.calls;
  const PendingCall* top =
      own != nullptr ? own->only_top(reinterpret_cast<uintptr_t>(place)) : nullptr;
  if (top == nullptr) return end_another_call(place, result);
  record_return(*top, result);
  end_innermost_call(*own, *top, place);
}

// As most calls end. False: nothing was done.
__attribute__((always_inline)) inline bool end_straight(uintptr_t* place) {
  const auto address = reinterpret_cast<uintptr_t>(place);
  ReturnStack* own = thread_local_state.calls;
  const PendingCall* top = own != nullptr ? own->only_top(address) : nullptr;
  if (__builtin_expect(top == nullptr || top->key == 0 || !functions_are_recorded(), 0)) {
    return false;
  }
  // A key with values is no frame's: then it is not straight.
  return leave_straight(
      top->key, address,
      [address](const FramePlace& left) {
        return left.stack_pointer == low_half(address);
      },
      [&] { end_innermost_call(*own, *top, place); });
}

// `arguments`: of the integer registers; `place`: of the return address.
void gather_call(uint32_t values, const uintptr_t* arguments, const uintptr_t* place,
                 ValuesBody& body) {
  uint64_t vectors[ARCTRACE_SHIM_VECTORS_MAX];
  if (has_vectors(all_values[values])) store_vectors(vectors);
  const auto stack = reinterpret_cast<uintptr_t>(place + 1);
  gather_arguments(all_values[values], {arguments, vectors, stack}, body);
}

// `pending_key`: of the pending call. enter() records the entry.
template <class Enter>
int begin_call(uint64_t frame_key, uint64_t pending_key, const StubCall& call,
               const Enter& enter) {
  if (!functions_are_recorded()) return 0;
  ReturnStack* calls = thread_local_state.calls;
  if (__builtin_expect(calls == nullptr, 0)) {
    calls = calls_of_new_thread();
    if (calls == nullptr) return 0;
  }
  if (is_left_out(frame_key, call)) return 0;
  const bool inside = (call.flags & ARCTRACE_SHIM_RETURNS_TO_SHIM) != 0;
  PendingCall pending{call.here(), *call.place, pending_key};
  if (inside) {
    ReturnStack* around = calls_with(pending.place);
    if (around == nullptr) return 0;
    pending.return_address = around->find(pending.place)->return_address;
  }
  const ThreadStacks& stacks = thread_local_state.stacks;
  if (__builtin_expect(!calls->push(stacks, pending, inside), 0)) return 0;
  if (__builtin_expect(!enter(), 0)) {
    if (PendingCall* added = calls->find(pending.place); added != nullptr) added->key = 0;
  }
  return inside ? 0 : 1;
}

__attribute__((noinline)) int begin_the_long_way(uint64_t key, const uintptr_t* place,
                                                 uintptr_t frame_pointer,
                                                 uint32_t flags) {
  const StubCall call{place, frame_pointer, flags};
  return begin_call(key, key, call, [&] { return record_enter(key, call); });
}

// As most calls begin: with their frame, and inside the innermost pending call. False:
// nothing was done.
__attribute__((always_inline)) inline bool begin_straight(uint64_t key,
                                                          const StubCall& call) {
  ReturnStack* calls = thread_local_state.calls;
  if (__builtin_expect(
          calls == nullptr || (call.flags & ARCTRACE_SHIM_RETURNS_TO_SHIM) != 0, 0)) {
    return false;
  }
  const PendingCall pending{call.here(), *call.place, key};
  return enter_straight(
      key, FramePlace(call.described()), call.here(),
      [&] { return calls->has_room_inside(thread_local_state.stacks, pending.place); },
      [&] { calls->add(pending); });
}

}  // namespace
}  // namespace arctrace

using namespace arctrace;  // the C functions below are the namespace's face

int arctrace_shim_call_begin(uint64_t frame_key, const uintptr_t* place,
                             uintptr_t frame_pointer, uint32_t flags) {
  if (!functions_are_recorded()) return 0;
  if (__builtin_expect(begin_straight(frame_key, {place, frame_pointer, flags}), 1)) {
    return 1;
  }
  return begin_the_long_way(frame_key, place, frame_pointer, flags);
}

int arctrace_shim_call_begin_with(uint64_t frame_key, const uintptr_t* place,
                                  uintptr_t frame_pointer, uint32_t flags,
                                  uint32_t values, const uintptr_t* arguments) {
  // Before the entry: what it takes is not the function's time.
  ValuesBody body;
  if (functions_are_recorded()) gather_call(values, arguments, place, body);
  const StubCall call{place, frame_pointer, flags};
  const uint64_t pending_key =
      may_have_values(frame_key) ? with_values(frame_key, values) : frame_key;
  return begin_call(frame_key, pending_key, call, [&] {
    return all_values[values].argument_count == 0
               ? record_enter(frame_key, call)
               : record_enter_with(frame_key, call, body);
  });
}

void arctrace_shim_call_end(uintptr_t* place, uintptr_t result) {
  if (__builtin_expect(end_straight(place), 1)) return;
  end_the_long_way(place, result);
}

void arctrace_shim_call_passed(uint64_t frame_key, const uintptr_t* place,
                               uintptr_t frame_pointer, uint32_t flags, int returns) {
  if (!functions_are_recorded() ||
      !record_enter(frame_key, StubCall{place, frame_pointer, flags}) || returns == 0) {
    return;
  }
  record_return({reinterpret_cast<uintptr_t>(place), *place, frame_key}, 0);
}

void arctrace_shim_call_passed_with(uint64_t frame_key, const uintptr_t* place,
                                    uintptr_t frame_pointer, uint32_t flags, int returns,
                                    uint32_t values, const uintptr_t* arguments) {
  if (!functions_are_recorded()) return;
  ValuesBody body;
  gather_call(values, arguments, place, body);
  if (!record_enter_with(frame_key, StubCall{place, frame_pointer, flags}, body) ||
      returns == 0) {
    return;
  }
  record_return({reinterpret_cast<uintptr_t>(place), *place, frame_key}, 0);
}

void arctrace_shim_set_values(const arctrace_shim_values* all) { all_values = all; }

const uint64_t* arctrace_shim_pending_calls(void) { return &first_return_stack; }
