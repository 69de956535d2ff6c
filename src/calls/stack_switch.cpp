// Notices changes of a thread's stack, vfork children and signal stacks, and saves and
// restores open frames.
#include "src/calls/stack_switch.hpp"

#include <signal.h>

#include <atomic>

#include "src/base/raw_syscall.hpp"
#include "src/calls/call_filter.hpp"
#include "src/os/kernel_use.hpp"
#include "src/process/process_identity.hpp"
#include "src/process/session.hpp"
#include "src/writer/opening_records.hpp"
#include "src/writer/record.hpp"
#include "src/writer/slow_path.hpp"
#include "src/writer/writer_call.hpp"

namespace arctrace::writer {

namespace {

// The block that has the thread's records at present; 0: that is not certain. While it
// stays the same, readers know the frames of each stack from there.
uint64_t written_in(const ThreadState& state) {
  if (state.loss.stack_differs) return 0;
  if (state.block.is_open) return state.block.serial << 1 | 1;
  return state.chain.block << 1;
}

// Repairs the state after a handler jumped out of a change of stacks: the open frames are
// not known.
void repair_switch(Nesting nesting, ThreadState& state) {
  if (!state.is_switching) return;
  state.open.depth = 0;
  state.is_switching = false;
  note_lost_change(nesting, state);
}

void write_coroutine(Nesting nesting, ThreadState& state, bool is_known, uint64_t ticks) {
  StackReport report{state.open.depth, 0};
  if (!is_known) report = reportable_frames(state, report.open, stack_record_space());
  const auto size = static_cast<uint32_t>(sizeof(arctrace_coroutine_body) +
                                          report.count * sizeof(uint64_t));
  const bool written =
      write_record(nesting, ARCTRACE_TYPE_COROUTINE, size, ticks, [&](std::byte* body) {
        part_at<arctrace_coroutine_body>(body).coroutine = state.coroutine;
        fill_frames(body + offsetof(arctrace_coroutine_body, depth), state, report);
      });
  if (!written) note_lost_change(nesting, state);
}

// Makes the frames of stack `number` the open ones.
void switch_stack(Nesting nesting, ThreadState& state, SavedFrames& saved,
                  uint32_t number, uint64_t ticks) {
  state.current_stack.version = 0;
  report_all_calls(nesting, state);
  const uint64_t now_in = written_in(state);
  const bool is_known =
      now_in != 0 && (!saved.has(number) || saved.was_written_in(number, now_in));
  saved.save(state.coroutine, state.open, state.filtered, now_in);
  state.is_switching = true;
  std::atomic_signal_fence(std::memory_order_seq_cst);
  saved.resume(number, state.open, state.filtered);
  state.coroutine = number;
  write_coroutine(nesting, state, is_known, ticks);
  std::atomic_signal_fence(std::memory_order_seq_cst);
  state.is_switching = false;
  if (filter_is_active()) keep_filter_context(thread_local_state);
}

// Whether the thread begins in a fork child, on a coroutine's stack.
bool is_forked_here(const ThreadState& state, uint64_t ticks) {
  const ProcessState* process = current_process(ticks);
  return state.coroutine == 0 && state.saved_frames == 0 && state.open.depth == 0 &&
         process != nullptr && process->origin == ARCTRACE_ORIGIN_FORK &&
         process->pid == state.slot.tid;
}

// The coroutine that a thread enters when it is found on another stack than its open
// frames; 0: the thread's own stack.
uint32_t entered_coroutine(ThreadState& state, const CoroutineStack& stack,
                           uint64_t ticks, bool is_switch) {
  if (stack.number == 0) return 0;
  if (!is_switch && thread_local_state.stacks.own.contains(stack.low)) return 0;
  if (stack.is_entered && is_forked_here(state, ticks)) state.forked_on = stack.low;
  return state.forked_on == stack.low ? 0 : stack.number;
}

// Whether the memory of that coroutine stack has become the thread's own stack since it
// was made.
bool is_replaced(const CoroutineStack& stack) {
  const StackRange& own = thread_local_state.stacks.own;
  return stack.number != 0 && stack.number <= thread_local_state.last_stack_before &&
         stack.low < own.high && own.low < stack.high;
}

// Finds the coroutine stack at `address`. Stacks that were there before the thread began
// are over, and forgotten.
CoroutineStack find_stack(uintptr_t address) {
  CoroutineStack stack = find_coroutine_stack(address);
  while (stack.found == CoroutineStack::Found::kYes && is_replaced(stack)) {
    const uint32_t number = stack.number;
    forget_coroutine_stack(stack);
    stack = find_coroutine_stack(address);
    if (stack.number == number) stack.found = CoroutineStack::Found::kBusy;
  }
  return stack;
}

// Notes that the thread's open frames are those of the stack that was found. While the
// thread runs on the same part of that stack nothing is to be done, except on an own
// stack that has arrays to be forgotten.
void store_current_stack(ThreadState& state, const CoroutineStack& stack) {
  const StackRange& own = thread_local_state.stacks.own;
  const bool has_own = stack.from <= own.low && stack.to >= own.high;
  const bool is_apart = stack.to <= own.low || stack.from >= own.high;
  if (stack.number != state.coroutine || !(stack.number == 0 ? has_own : is_apart))
    return;
  state.current_stack = {stack.from, stack.to, stack.version};
}

}  // namespace

void cache_current_stack_slow(Nesting nesting, uintptr_t address, uint64_t ticks,
                              bool is_switch) {
  const ThreadLocal& local = thread_local_state;
  if (!nesting.outermost() || local.is_vforking || storage_is_shared()) return;
  ThreadState* state = attached_thread(nesting, ticks);
  if (state == nullptr || local.stacks.signal.contains(address - 1)) return;
  repair_switch(nesting, *state);
  const CoroutineStack stack = find_stack(address);
  if (stack.found == CoroutineStack::Found::kBusy) return;
  // A function called on the own stack, further out than an array, is not called by the
  // function that has the array.
  const StackRange& own = local.stacks.own;
  if (stack.number == 0 && !is_switch && own.contains(address - 1)) {
    forget_coroutine_stacks(own.low, address - 1);
  }
  uint32_t number = stack.number;
  if (number != state->coroutine) {
    number = entered_coroutine(*state, stack, ticks, is_switch);
  }
  if (number != state->coroutine) {
    SavedFrames* saved = saved_frames(*state);
    if (saved == nullptr) return;
    if (number != 0 && !saved->has(number)) {
      const EnteredStack entered = enter_coroutine_stack(stack, state->calls);
      number = entered.number;
      if (number == 0) return;
      if (entered.before != nullptr && entered.before != state->calls) {
        state->calls->take_over(*entered.before, {stack.low, stack.high}, address);
      }
    }
    switch_stack(nesting, *state, *saved, number, ticks);
  }
  store_current_stack(*state, stack);
}

void record_stack_switch(uintptr_t stack_pointer, bool is_switch) {
  if (!has_coroutine_stacks()) return;
  const WriterCall writer_call;
  if (writer_call.refused() || writer_call.nested()) return;
  cache_current_stack_slow(writer_call, stack_pointer, session_ticks(), is_switch);
}

void record_vfork_begin() {
  thread_local_state.vfork_has_begun = true;
  const WriterCall writer_call;
  if (writer_call.refuses_record()) return;
  const bool written = write_record(writer_call, ARCTRACE_TYPE_VFORK_BEGIN, 0,
                                    session_ticks(), [](std::byte*) {});
  if (ThreadState* state = thread_local_state.state; state != nullptr) {
    state->vfork_depth = state->open.depth;
    state->vfork_is_recorded = written;
    if (!written) note_lost_change(writer_call, *state);
  }
}

void record_vfork_end(uint32_t child_pid) {
  // The session may have been joined meanwhile, or its gate have been closed.
  if (!thread_local_state.vfork_has_begun) return;
  thread_local_state.vfork_has_begun = false;
  const WriterCall writer_call;
  if (writer_call.refuses_record()) return;
  const bool written =
      write_record(writer_call, ARCTRACE_TYPE_VFORK_END, sizeof(arctrace_vfork_end_body),
                   session_ticks(), [child_pid](std::byte* body) {
                     part_at<arctrace_vfork_end_body>(body).child_pid = child_pid;
                   });
  // The child only ever added to the frames that were open, or left some of them.
  if (ThreadState* state = thread_local_state.state; state != nullptr) {
    state->open.depth = state->vfork_depth;
    // Readers can't tell from the end alone to which frames it leads back.
    if (!written || !state->vfork_is_recorded) note_lost_change(writer_call, *state);
  }
}

}  // namespace arctrace::writer
