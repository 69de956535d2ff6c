#include "src/writer/opening_records.hpp"

#include "src/buffer/wake_word.hpp"
#include "src/os/kernel_use.hpp"

namespace arctrace {

uint32_t reportable_frames(const ThreadState& state, uint32_t room) {
  const uint32_t told = state.filtered.reported_frames(state.open.depth);
  if (told > OpenFrames::kMax) return 0;
  const uint32_t fit = room < kStackFixedBody ? 0 : (room - kStackFixedBody) / 8;
  return told < fit ? told : fit;
}

uint32_t stack_room() {
  return (session.view.geometry().block_size - ARCTRACE_BLOCK_HEADER_SIZE) / 4;
}

void fill_stack(std::byte* body, const ThreadState& state, uint32_t count) {
  store_u32(body, state.filtered.reported_frames(state.open.depth));
  store_u32(body + 4, count);
  uint32_t left = count;
  for (uint32_t i = state.open.depth; left > 0; --i) {
    if (!state.filtered.is_reported(i - 1)) continue;
    --left;
    store_u64(body + kStackFixedBody + uint64_t{left} * 8, state.open.frames[i - 1].key);
  }
}

void fill_lost(std::byte* body, const Losses& losses, const ThreadState& state) {
  store_u32(body, losses.cause);
  store_u32(body + 4, losses.flags);
  store_u64(body + 8, losses.count);
  store_u64(body + 16, state.loss.since_ticks);
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

bool is_known_empty(const ThreadState& state) {
  return state.loss.freed_seen ==
         IpcAtomics::load_relaxed(session.view.control().freed) + 1;
}

}  // namespace arctrace
