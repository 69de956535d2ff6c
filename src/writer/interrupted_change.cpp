#include "src/writer/interrupted_change.hpp"

namespace arctrace {
namespace {

// For an entry of which there is no record. It is never committed.
uint32_t no_record = ARCTRACE_WORD0(ARCTRACE_TYPE_ENTER, ARCTRACE_COMPACT_HEAD_SIZE) |
                     ARCTRACE_IN_PROGRESS;

uint32_t word0_of(const StackChange& change) {
  return IpcAtomics::load_relaxed(word_at(change.word0));
}
bool is_committed(const StackChange& change) {
  return (word0_of(change) & ARCTRACE_IN_PROGRESS) == 0;
}

// Whether the change in progress adds a frame.
bool is_entering(const ThreadLocal& local) {
  if (local.change.word0 == nullptr || local.reporting != 0) return false;
  const uint32_t word0 = word0_of(local.change) & ~ARCTRACE_IN_PROGRESS;
  return word0 >> ARCTRACE_TYPE_SHIFT == ARCTRACE_TYPE_ENTER;
}

// Removes the frame with index `at`, whose entry was not recorded. Those further in are
// of handlers, and recorded: they stay open until they are seen to have been left.
void take_back_frame(ThreadState& state, uint32_t at) {
  OpenFrames& open = state.open;
  for (uint32_t i = at; i + 1 < open.kept(); ++i) {
    open.frames[i] = open.frames[i + 1];
    state.filtered.frames[i] = state.filtered.frames[i + 1];
  }
  open.depth = open.depth.previous();
}

}  // namespace

StackChange unrecorded_enter(uint32_t depth) {
  return {reinterpret_cast<std::byte*>(&no_record), depth};
}

void resolve_change(ThreadLocal& local) {
  const StackChange& change = local.change;
  if (change.word0 == nullptr || local.state == nullptr) return;
  ThreadState& state = *local.state;
  if (is_committed(change)) {
    state.open.depth = change.depth;
    if (local.reporting != 0) {
      state.filtered.frames[local.reporting - 1].reporting =
          FilteredFrame::Reporting::kReported;
      local.reporting = 0;
    }
    finish_change(local);
  } else if (is_entering(local) && state.open.depth + 1 == change.depth) {
    // The interrupted call is about to count its frame.
    state.open.forget_location(state.open.depth);
    state.open.depth = change.depth;
  }
}

void abandon_change(ThreadLocal& local) {
  resolve_change(local);
  if (local.state != nullptr && is_entering(local)) {
    take_back_frame(*local.state, local.change.depth - 1);
  }
  finish_change(local);
  local.reporting = 0;
}

}  // namespace arctrace
