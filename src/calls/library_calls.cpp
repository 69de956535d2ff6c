// The slow path of calls through the shim's stubs, which are pending until they return,
// and of calls that have arguments, return values or conditions.
#include "src/calls/call_args.hpp"
#include "src/calls/call_records.hpp"
#include "src/calls/fast_path.hpp"
#include "src/calls/filtered_path.hpp"
#include "src/calls/slow_path_stack.hpp"
#include "src/calls/stack_switch.hpp"
#include "src/os/stop_program.hpp"
#include "src/process/session.hpp"
#include "src/protocol/losses.hpp"
#include "src/writer/loss.hpp"
#include "src/writer/record_filter.hpp"
#include "src/writer/shared_records.hpp"
#include "src/writer/slow_path.hpp"
#include "src/writer/writer_call.hpp"

namespace arctrace::writer {
namespace {

const arctrace_shim_call_args* all_args;  // set once, before a call has arguments

// A pending call's index into `all_args` is kept in its key, in bits that neither an
// address nor a name needs; kArgsBit is set if there is one.
constexpr uint64_t kArgsBit = uint64_t{1} << 61;
constexpr unsigned kArgsShift = 48;
constexpr uint64_t kArgsMask = (PendingCall::kInside >> kArgsShift) - 1;
static_assert(PendingCall::kInside < kArgsBit);
static_assert(ARCTRACE_SHIM_CALL_ARGS_MAX <= kArgsMask + 1);
static_assert((ARCTRACE_FRAME_NAME_BIT | ARCTRACE_FRAME_LIBRARY_BIT) >> 62 != 0);

// Addresses above those bits are given only to programs that ask for them (five-level
// paging).
bool may_have_args(uint64_t key) {
  return (key & (kArgsBit | kArgsMask << kArgsShift)) == 0;
}
uint64_t key_with_args(uint64_t key, uint32_t args) {
  return key | kArgsBit | uint64_t{args} << kArgsShift;
}
bool has_args(uint64_t key) { return (key & kArgsBit) != 0; }
const arctrace_shim_call_args& args_of(uint64_t key) {
  return all_args[key >> kArgsShift & kArgsMask];
}
// Whether something is recorded or done at the call's end, besides its exit.
bool has_end(const arctrace_shim_call_args& args) {
  return args.result.kind != 0 || args.conditions != 0;
}
bool has_only_locks(const arctrace_shim_call_args& args) {
  return args.locks != 0 && !has_end(args);
}
// The key of the frame of a call with this key.
uint64_t frame_key(uint64_t key) {
  if (has_args(key)) key &= ~(kArgsBit | kArgsMask << kArgsShift);
  return key & ~PendingCall::kInside;
}

// Where a call with a certain return slot was found.
struct FoundCall {
  PendingCalls* pending;  // null: in `abandoned`, if that is not null
  AbandonedCalls* abandoned;
  uintptr_t return_address;
  uint32_t threads;   // in whose calls it was found
  bool is_ambiguous;  // two calls with this slot return to different addresses

  bool is_one() const { return threads != 0 && !is_ambiguous; }
  void add(const PendingCall& call) {
    if (threads++ == 0) {
      return_address = call.return_address;
    } else if (return_address != call.return_address) {
      is_ambiguous = true;
    }
  }
};

// Finds the call with this return slot. A coroutine may return in another thread than it
// was called in, so any of the calls that are not among the thread's own pending ones may
// be the one.
__attribute__((noinline)) FoundCall find_call(uintptr_t return_slot) {
  FoundCall found{};
  PendingCalls* own = thread_local_state.calls;
  const PendingCall* call = own != nullptr ? own->find(return_slot) : nullptr;
  if (__builtin_expect(call != nullptr, 1)) {
    found.pending = own;
    found.add(*call);
    return found;
  }
  for_each_pending_calls([&](PendingCalls& calls) {
    if (const PendingCall* other = calls.find(return_slot); other != nullptr) {
      found.pending = &calls;
      found.add(*other);
    } else if (const PendingCall* abandoned = calls.abandoned.find(return_slot);
               abandoned != nullptr) {
      if (found.abandoned == nullptr || &calls == own) found.abandoned = &calls.abandoned;
      found.add(*abandoned);
    }
  });
  return found;
}

// Null: the calling thread can't have pending calls; a record is lost.
__attribute__((noinline)) PendingCalls* calls_of_new_thread() {
  attach_this_thread();
  if (thread_local_state.calls != nullptr) return thread_local_state.calls;
  count_lost_without_slot(session.view.control(), ARCTRACE_LOST_NO_SLOT);
  return nullptr;
}

void record_exit_with_retval(const PendingCall& call, const arctrace_shim_call_args& args,
                             uintptr_t retval) {
  uint64_t vectors[ARCTRACE_SHIM_VECTORS_MAX];
  if (has_vectors(args.result)) store_vectors(vectors);
  ArgsBody body;
  const uint64_t key = frame_key(call.key);
  const uintptr_t cfa = call.return_slot + sizeof(uintptr_t);
  if (args.result.kind != 0) {
    gather_retval(args, {&retval, vectors, 0}, body);
    if (exit_innermost_slow(key, call.return_slot, &body)) return;
    exit_slow(key, cfa, call.return_slot, &body);
  } else if (!record_innermost_exit(key, call.return_slot)) {
    exit_slow(key, cfa, call.return_slot, nullptr);
  }
}

__attribute__((noinline)) void record_return_with_retval(const PendingCall& call,
                                                         uintptr_t retval) {
  const arctrace_shim_call_args& args = args_of(call.key);
  record_exit_with_retval(call, args, retval);
  if (args.conditions != 0) {
    conditional_call_ends(args.conditions, call.return_slot, retval);
  }
}

void record_return(const PendingCall& call, uintptr_t retval) {
  if (call.key == PendingCall::kNotRecorded || !is_recorded(ARCTRACE_GATE_FUNCTIONS)) {
    return;
  }
  if (__builtin_expect(has_args(call.key), 0)) {
    return record_return_with_retval(call, retval);
  }
  const uint64_t key = frame_key(call.key);
  const uintptr_t cfa = call.return_slot + sizeof(uintptr_t);
  if (!record_innermost_exit(key, call.return_slot)) {
    exit_slow(key, cfa, call.return_slot, nullptr);
  }
}

[[noreturn]] void stop_at_unknown_return(uintptr_t return_slot, const FoundCall& found) {
  PendingCalls* own = thread_local_state.calls;
  stop_program(
      {{"a traced function returned, but arctrace does not know where to: "},
       {"stack address ", return_slot},
       {found.is_ambiguous ? ", calls that differ " : ", calls found ", found.threads},
       {", pending calls ", own != nullptr ? own->count() : 0},
       {". Record the program with fewer hooks (--no-libcall, -N)."}});
}

// Records the return of a call that seemed abandoned, unless its frame was recorded as
// left.
void record_late_return(const PendingCall& call, uintptr_t retval) {
  if (call.key == PendingCall::kNotRecorded) return;
  const uint64_t key = frame_key(call.key);
  if (is_open_frame(key, call.return_slot + sizeof(uintptr_t))) {
    record_return(call, retval);
  }
}

// Makes a call that seemed abandoned a pending one again, because its callee ends with a
// jump to another function, with which it will return. Its own exit is not recorded.
bool resume_abandoned_call(PendingCalls& own, AbandonedCalls& abandoned,
                           uintptr_t return_slot) {
  PendingCall* call = abandoned.find(return_slot);
  const PendingCall resumed{return_slot, call->return_address, PendingCall::kNotRecorded};
  if (!own.push(thread_local_state.stacks, resumed, false)) return false;
  call->return_slot = 0;
  return true;
}

// Ends a call that is not just the innermost of this thread's.
void end_another_call(uintptr_t* return_slot, uintptr_t retval) {
  const auto address = reinterpret_cast<uintptr_t>(return_slot);
  const FoundCall found = find_call(address);
  if (__builtin_expect(!found.is_one(), 0)) stop_at_unknown_return(address, found);
  PendingCalls* calls = found.pending;
  if (calls != nullptr) {
    // After the first call come those that ended with a jump to it.
    calls->for_each_at(
        address, [retval](const PendingCall& call) { record_return(call, retval); });
  } else {
    record_late_return(*found.abandoned->find(address), retval);
  }
  *return_slot = found.return_address;
  std::atomic_signal_fence(std::memory_order_seq_cst);
  if (calls == nullptr) {
    found.abandoned->find(address)->return_slot = 0;
  } else if (calls == thread_local_state.calls) {
    calls->drop(thread_local_state.stacks, address);
  } else {
    calls->drop_from_afar(address);
  }
}

void end_call(uintptr_t* return_slot, uintptr_t retval) {
  PendingCalls* own = thread_local_state.calls;
  const PendingCall* top =
      own != nullptr ? own->only_top(reinterpret_cast<uintptr_t>(return_slot)) : nullptr;
  if (top == nullptr) return end_another_call(return_slot, retval);
  record_return(*top, retval);
  end_innermost_call(*own, *top, return_slot);
}

// Whether a task that uses another thread's thread-local storage makes the call: it must
// not touch that thread's pending calls. The call's record counts as lost.
bool is_of_borrower(uintptr_t stack_pointer) {
  const bool is_one =
      storage_is_shared() ? is_borrower() : detect_borrower(stack_pointer);
  if (is_one) count_lost_without_slot(session.view.control(), ARCTRACE_LOST_NO_SLOT);
  return is_one;
}

void gather_call(const StubCall& call, uint32_t args, const uintptr_t* registers,
                 ArgsBody& body) {
  uint64_t vectors[ARCTRACE_SHIM_VECTORS_MAX];
  if (has_vectors(all_args[args])) store_vectors(vectors);
  const auto stack = reinterpret_cast<uintptr_t>(call.return_slot + 1);
  gather_args(all_args[args], {registers, vectors, stack}, body);
}

// Counts the entry and the exit of a call that can't be a pending one, because there is
// no space for its return address.
void lose_call(const StubCall& call) {
  const WriterCall writer_call(call.here());
  if (writer_call.refuses_record()) return;
  const uint64_t ticks = session_ticks();
  ThreadState* state = recording_thread(writer_call, ticks);
  if (state != nullptr) count_lost_call(*state, ticks);
}

// `pending_key`: of the pending call. enter() records the entry.
template <class Enter>
int begin_call(uint64_t key, uint64_t pending_key, const StubCall& call,
               const Enter& enter) {
  if (!is_recorded(ARCTRACE_GATE_FUNCTIONS)) return 0;
  if (__builtin_expect(is_of_borrower(call.here()), 0)) return 0;
  PendingCalls* calls = thread_local_state.calls;
  if (__builtin_expect(calls == nullptr, 0)) {
    calls = calls_of_new_thread();
    if (calls == nullptr) return 0;
  }
  if (is_filtered_out(key, call)) return 0;
  const bool inside = (call.flags & ARCTRACE_SHIM_RETURNS_TO_SHIM) != 0;
  PendingCall pending{call.here(), *call.return_slot, pending_key};
  if (inside) {
    const FoundCall around = find_call(pending.return_slot);
    if (!around.is_one()) return 0;
    if (around.pending == nullptr &&
        !resume_abandoned_call(*calls, *around.abandoned, pending.return_slot)) {
      lose_call(call);
      return 0;
    }
    pending.return_address = around.return_address;
    pending.key |= PendingCall::kInside;
  }
  if (__builtin_expect(!calls->push(thread_local_state.stacks, pending, inside), 0)) {
    lose_call(call);
    return 0;
  }
  if (__builtin_expect(!enter(), 0)) {
    if (PendingCall* added = calls->find(pending.return_slot); added != nullptr) {
      added->key = PendingCall::kNotRecorded;
    }
  }
  return inside ? 0 : 1;
}

}  // namespace

__attribute__((flatten)) bool call_began_in_chain(uint64_t key,
                                                  const uintptr_t* return_slot,
                                                  uintptr_t frame_pointer, uint32_t flags,
                                                  ThreadState& state) {
  return call_began_fast(KnownSharedBlock{state}, key,
                         {return_slot, frame_pointer, flags});
}

__attribute__((flatten)) void call_ended_in_chain(uintptr_t* return_slot,
                                                  uintptr_t retval, ThreadState& state) {
  if (call_ended_fast(KnownSharedBlock{state}, return_slot)) return;
  call_ended_slow(return_slot, retval);
}

void set_call_args(const arctrace_shim_call_args* all) { all_args = all; }

int call_began_slow(uint64_t key, const uintptr_t* return_slot, uintptr_t frame_pointer,
                    uint32_t flags) {
  const StubCall call{return_slot, frame_pointer, flags};
  if (fast_path_is_open<ARCTRACE_GATE_FUNCTIONS>() &&
      call_began_fast(OwnBlock{kNowhereElse}, key, call, NoLocks{},
                      &is_known_stub_call_in_found)) {
    return 1;
  }
  if (word_path_is_open<ARCTRACE_GATE_FUNCTIONS>() &&
      call_began_fast(own_block<WordStamp>(kNowhereElse), key, call, NoLocks{},
                      &is_known_stub_call_in_found)) {
    return 1;
  }
  if (filtered_path_is_open()) {
    const FilteredEntry entry = begin_filtered_call(key, call);
    if (entry != FilteredEntry::kUndone) return entry == FilteredEntry::kAdded ? 1 : 0;
  }
  int through = 0;
  with_stack_space([&] {
    through = begin_call(key, key, call, [&] { return record_enter(key, call); });
  });
  return through;
}

int call_began_with_args(uint64_t key, const StubCall& call, uint32_t args,
                         const uintptr_t* registers) {
  if (filtered_path_is_open() && has_only_locks(all_args[args])) {
    const FilteredEntry entry =
        begin_filtered_lock_call(key, call, all_args[args].locks, registers);
    if (entry != FilteredEntry::kUndone) return entry == FilteredEntry::kAdded ? 1 : 0;
  }
  int through = 0;
  with_stack_space([&] {
    // Arguments are gathered before the entry, so that the time that this takes is not
    // the function's.
    ArgsBody body;
    if (is_recorded(ARCTRACE_GATE_FUNCTIONS)) gather_call(call, args, registers, body);
    const uint64_t pending_key =
        has_end(all_args[args]) && may_have_args(key) ? key_with_args(key, args) : key;
    through = begin_call(key, pending_key, call, [&] {
      return all_args[args].argument_count == 0 && all_args[args].locks == 0
                 ? record_enter(key, call)
                 : enter_slow(key, call.described(), call.here(), &body);
    });
    if (through != 0 && all_args[args].conditions != 0) {
      conditional_call_begins(*thread_local_state.calls, call.here());
    }
  });
  return through;
}

void call_ended_slow(uintptr_t* return_slot, uintptr_t retval) {
  if (filtered_path_is_open() && end_filtered_call(return_slot)) return;
  if (word_path_is_open<ARCTRACE_GATE_FUNCTIONS>() &&
      call_ended_fast(own_block<WordStamp>(kNowhereElse), return_slot)) {
    return;
  }
  with_stack_space([=] { end_call(return_slot, retval); });
}

void entry_only_call(uint64_t key, const StubCall& call, bool returns) {
  with_stack_space([=] {
    if (!is_recorded(ARCTRACE_GATE_FUNCTIONS) || !record_enter(key, call) || !returns) {
      return;
    }
    record_return({call.here(), *call.return_slot, key}, 0);
  });
}

void entry_only_call_with_args(uint64_t key, const StubCall& call, bool returns,
                               uint32_t args, const uintptr_t* registers) {
  if (!is_recorded(ARCTRACE_GATE_FUNCTIONS)) return;
  ArgsBody body;
  gather_call(call, args, registers, body);
  if (!enter_slow(key, call.described(), call.here(), &body) || !returns) return;
  record_return({call.here(), *call.return_slot, key}, 0);
}

}  // namespace arctrace::writer
