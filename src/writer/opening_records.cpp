// Finds the contents of LOST and STACK records, and wakes the collector.
#include "src/writer/opening_records.hpp"

#include <atomic>

#include "src/buffer/buffer_view.hpp"
#include "src/os/kernel_use.hpp"
#include "src/protocol/block_state.hpp"
#include "src/writer/writer_call.hpp"

namespace arctrace::writer {
namespace {

uint64_t later_of(uint64_t a, uint64_t b) { return a > b ? a : b; }

}  // namespace

FramesState frames_state(const ThreadState& state, uint64_t ticks) {
  FramesState now{};
  int32_t added = added_frames();
  int32_t before;
  do {  // handlers that come in between change both
    before = added;
    std::atomic_signal_fence(std::memory_order_seq_cst);
    now.open = state.open.depth;
    now.ticks = before != 0 ? later_of(ticks, session_ticks()) : ticks;
    std::atomic_signal_fence(std::memory_order_seq_cst);
    added = added_frames();
  } while (added != before);
  return now;
}

OpeningState opening_state(ThreadState& state, uint64_t ticks) {
  arctrace_writer_slot& slot = state.slot.slot();
  OpeningState opening{
      {ticks, 0}, {}, state.loss.pending ? state.loss.since_ticks : ticks};
  // The order with the next stores matters: a handler that comes later sets these words
  // again.
  state.loss.stack_differs = false;
  state.loss.pending = false;
  std::atomic_signal_fence(std::memory_order_seq_cst);
  CountedLosses later = counted_losses(slot);
  do {
    opening.losses = later;
    std::atomic_signal_fence(std::memory_order_seq_cst);
    opening.frames = frames_state(state, opening.frames.ticks);
    // A nested call that lost a change has not reset its count
    // (WriterCall::leave_nested).
    if (thread_local_state.nesting == 0) break;
    opening.frames.ticks = later_of(opening.frames.ticks, session_ticks());
    std::atomic_signal_fence(std::memory_order_seq_cst);
    later = counted_losses(slot);
  } while (!(later == opening.losses));
  return opening;
}

StackReport reportable_frames(const ThreadState& state, uint32_t open, uint32_t space) {
  const uint32_t reported = state.filtered.reported_frames(open);
  if (reported > OpenFrames::kMax) return {open, 0};
  const uint32_t fit =
      space < stack_body_size(state, 0)
          ? 0
          : (space - stack_body_size(state, 0)) / static_cast<uint32_t>(sizeof(uint64_t));
  return {open, reported < fit ? reported : fit};
}

uint32_t stack_record_space() {
  return (session.view.geometry().block_size - ARCTRACE_BLOCK_HEADER_SIZE) / 4;
}

void fill_frames(std::byte* body, const ThreadState& state, const StackReport& report) {
  auto& stack = part_at<arctrace_stack_body>(body);
  stack.depth = state.filtered.reported_frames(report.open);
  stack.count = report.count;
  std::byte* const keys = body + sizeof stack;
  uint32_t left = report.count;
  for (uint32_t i = report.open; left > 0; --i) {
    if (!state.filtered.is_reported(i - 1)) continue;
    --left;
    const uint64_t key = state.open.frames[i - 1].key;
    __builtin_memcpy(keys + left * sizeof key, &key, sizeof key);
  }
}

void fill_stack(std::byte* body, ThreadState& state, const StackReport& report) {
  fill_frames(body, state, report);
  if (!stack_has_number(state)) return;
  state.begins_in_frames = false;
  __builtin_memcpy(body + stack_body_size(report.count), &state.coroutine,
                   sizeof state.coroutine);
}

void fill_lost(std::byte* body, const Losses& losses, uint64_t since_ticks) {
  auto& lost = part_at<arctrace_lost_body>(body);
  lost.cause = losses.cause;
  lost.flags = losses.flags;
  lost.count = losses.count;
  lost.since_ticks = since_ticks;
}

void wake_past_mark() {
  arctrace_control& control = session.view.control();
  const uint32_t mark = IpcAtomics::load_relaxed(control.high_water_blocks);
  if (mark == 0 || !may_call_kernel() || IpcAtomics::load_relaxed(control.wake) != 0) {
    return;
  }
  if (blocks_in_use<IpcAtomics>(control) >= mark) wake_collector(control);
}

void note_no_block(ThreadState& state, uint64_t freed) {
  constexpr uint64_t kAsk = 0;
  const bool may_have_more =
      !Handout<IpcAtomics>::rest_is_for_definitions(session.view) &&
      Handout<IpcAtomics>::may_have_more(session.view);
  state.loss.freed_seen = may_have_more ? kAsk : freed + 1;
}

bool is_known_empty(const ThreadState& state) {
  return state.loss.freed_seen ==
         IpcAtomics::load_relaxed(session.view.control().freed) + 1;
}

}  // namespace arctrace::writer
