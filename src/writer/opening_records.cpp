#include "src/writer/opening_records.hpp"

#include "src/buffer/wake_word.hpp"
#include "src/os/kernel_use.hpp"

namespace arctrace {

uint32_t reportable_frames(const ThreadState& state, uint32_t room) {
  const uint32_t reported = state.filtered.reported_frames(state.open.depth);
  if (reported > OpenFrames::kMax) return 0;
  const uint32_t fit =
      room < stack_body_size(state, 0)
          ? 0
          : (room - stack_body_size(state, 0)) / static_cast<uint32_t>(sizeof(uint64_t));
  return reported < fit ? reported : fit;
}

uint32_t stack_room() {
  return (session.view.geometry().block_size - ARCTRACE_BLOCK_HEADER_SIZE) / 4;
}

void fill_frames(std::byte* body, const ThreadState& state, uint32_t count) {
  auto& stack = part_at<arctrace_stack_body>(body);
  stack.depth = state.filtered.reported_frames(state.open.depth);
  stack.count = count;
  std::byte* const keys = body + sizeof stack;
  uint32_t left = count;
  for (uint32_t i = state.open.depth; left > 0; --i) {
    if (!state.filtered.is_reported(i - 1)) continue;
    --left;
    const uint64_t key = state.open.frames[i - 1].key;
    __builtin_memcpy(keys + left * sizeof key, &key, sizeof key);
  }
}

void fill_stack(std::byte* body, const ThreadState& state, uint32_t count) {
  fill_frames(body, state, count);
  if (state.coroutine == 0) return;
  __builtin_memcpy(body + stack_body_size(count), &state.coroutine,
                   sizeof state.coroutine);
}

void fill_lost(std::byte* body, const Losses& losses, const ThreadState& state) {
  auto& lost = part_at<arctrace_lost_body>(body);
  lost.cause = losses.cause;
  lost.flags = losses.flags;
  lost.count = losses.count;
  lost.since_ticks = state.loss.since_ticks;
}

void wake_past_mark() {
  arctrace_control& control = session.view.control();
  const uint32_t mark = IpcAtomics::load_relaxed(control.high_water_blocks);
  if (mark == 0 || !may_call_kernel() || IpcAtomics::load_relaxed(control.wake) != 0) {
    return;
  }
  const uint64_t used =
      IpcAtomics::load_relaxed(control.taken) - IpcAtomics::load_relaxed(control.freed);
  if (used >= mark) wake_collector(control);
}

void note_no_block(ThreadState& state, uint64_t freed) {
  constexpr uint64_t kAsk = 0;
  state.loss.freed_seen =
      Handout<IpcAtomics>::may_have_more(session.view) ? kAsk : freed + 1;
}

bool is_known_empty(const ThreadState& state) {
  return state.loss.freed_seen ==
         IpcAtomics::load_relaxed(session.view.control().freed) + 1;
}

}  // namespace arctrace
