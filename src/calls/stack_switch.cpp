#include "src/calls/stack_switch.hpp"

#include <atomic>

#include "src/calls/call_filter.hpp"
#include "src/process/process_identity.hpp"
#include "src/process/session.hpp"
#include "src/writer/lent_storage.hpp"
#include "src/writer/opening_records.hpp"
#include "src/writer/record.hpp"
#include "src/writer/slow_path.hpp"
#include "src/writer/stack_change.hpp"

namespace arctrace {
namespace {

// Which of the thread's blocks has its records at present; 0: that is not certain. While
// it is the same, readers know the frames of each stack from there.
uint64_t written_in(const ThreadState& state) {
  if (state.loss.stack_differs) return 0;
  if (state.block.is_open) return state.block.serial << 1 | 1;
  return state.chain.block << 1;
}

// A handler jumped out of a change of the stacks: what is open is not known.
void settle_switch(Nesting nesting, ThreadState& state) {
  if (!state.is_switching) return;
  state.open.depth = 0;
  state.is_switching = false;
  note_lost_change(nesting, state);
}

void write_coroutine(Nesting nesting, ThreadState& state, bool is_known, uint64_t ticks) {
  StackReport report{state.open.depth, 0};
  if (!is_known) report = reportable_frames(state, report.open, stack_room());
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
void switch_stack(Nesting nesting, ThreadState& state, ParkedStacks& parked,
                  uint32_t number, uint64_t ticks) {
  state.followed.version = 0;
  report_all_calls(nesting, state);
  const uint64_t now_in = written_in(state);
  const bool is_known =
      now_in != 0 && (!parked.has(number) || parked.was_written_in(number, now_in));
  parked.park(state.coroutine, state.open, state.filtered, now_in);
  state.is_switching = true;
  std::atomic_signal_fence(std::memory_order_seq_cst);
  parked.resume(number, state.open, state.filtered);
  state.coroutine = number;
  write_coroutine(nesting, state, is_known, ticks);
  std::atomic_signal_fence(std::memory_order_seq_cst);
  state.is_switching = false;
  if (filter_is_active()) keep_filter_context(thread_local_state);
}

// Whether the thread begins in a fork child, on a coroutine's stack.
bool is_forked_here(const ThreadState& state, uint64_t ticks) {
  const ProcessState* process = current_process(ticks);
  return state.coroutine == 0 && state.parked == 0 && state.open.depth == 0 &&
         process != nullptr && process->origin == ARCTRACE_ORIGIN_FORK &&
         process->pid == state.slot.tid;
}

// The coroutine to which a thread goes over that is found on another stack than its open
// frames; 0: its own stack.
uint32_t entered_coroutine(ThreadState& state, const MadeStack& made, uint64_t ticks,
                           bool is_switch) {
  if (made.number == 0) return 0;
  if (!is_switch && thread_local_state.stacks.own.contains(made.low)) return 0;
  if (made.is_entered && is_forked_here(state, ticks)) state.forked_on = made.low;
  return state.forked_on == made.low ? 0 : made.number;
}

// Whether the memory of that stack has become the thread's own stack since it was made.
bool is_replaced(const MadeStack& made) {
  const StackRange& own = thread_local_state.stacks.own;
  return made.number != 0 && made.number <= thread_local_state.made_before &&
         made.low < own.high && own.low < made.high;
}

// The coroutine's stack at `address`. Those that were there before the thread began are
// over, and forgotten.
MadeStack find_stack(uintptr_t address) {
  MadeStack made = find_made_stack(address);
  while (made.found == MadeStack::Found::kYes && is_replaced(made)) {
    const uint32_t number = made.number;
    forget_made_stack(made);
    made = find_made_stack(address);
    if (made.number == number) made.found = MadeStack::Found::kBusy;
  }
  return made;
}

// The thread's open frames are those of the stack that was found. While it runs on the
// same part of it nothing is to be done, except on an own stack that has arrays to be
// forgotten.
void note_followed(ThreadState& state, const MadeStack& made) {
  const StackRange& own = thread_local_state.stacks.own;
  const bool has_own = made.from <= own.low && made.to >= own.high;
  const bool is_apart = made.to <= own.low || made.from >= own.high;
  if (made.number != state.coroutine || !(made.number == 0 ? has_own : is_apart)) return;
  state.followed = {made.from, made.to, made.version};
}

}  // namespace

void follow_stack_slow(Nesting nesting, uintptr_t address, uint64_t ticks,
                       bool is_switch) {
  const ThreadLocal& local = thread_local_state;
  if (!nesting.outermost() || local.is_vforking || storage_is_lent()) return;
  ThreadState* state = attached_thread(nesting, ticks);
  if (state == nullptr || local.stacks.signal.contains(address - 1)) return;
  settle_switch(nesting, *state);
  const MadeStack made = find_stack(address);
  if (made.found == MadeStack::Found::kBusy) return;
  // What is called on the own stack, further out than an array, is not called by the
  // function that has the array.
  const StackRange& own = local.stacks.own;
  if (made.number == 0 && !is_switch && own.contains(address - 1)) {
    forget_made_stacks(own.low, address - 1);
  }
  uint32_t number = made.number;
  if (number != state->coroutine) {
    number = entered_coroutine(*state, made, ticks, is_switch);
  }
  if (number != state->coroutine) {
    ParkedStacks* parked = parked_stacks(*state);
    if (parked == nullptr) return;
    if (number != 0 && !parked->has(number)) {
      const EnteredStack entered = enter_made_stack(made, state->calls);
      number = entered.number;
      if (number == 0) return;
      if (entered.before != nullptr && entered.before != state->calls) {
        state->calls->take_over(*entered.before, {made.low, made.high}, address);
      }
    }
    switch_stack(nesting, *state, *parked, number, ticks);
  }
  note_followed(*state, made);
}

void record_stack_switch(uintptr_t stack_pointer, bool is_switch) {
  if (!has_made_stacks()) return;
  const WriterCall writer_call;
  if (writer_call.refused() || writer_call.nested()) return;
  follow_stack_slow(writer_call, stack_pointer, session_ticks(), is_switch);
}

}  // namespace arctrace
