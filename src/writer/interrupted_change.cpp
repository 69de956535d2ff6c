#include "src/writer/interrupted_change.hpp"

#include "src/base/memory.hpp"

namespace arctrace {
namespace {

// An earlier handler used the entry of the frame that the change enters. All that is
// known of that frame until the interrupted call stores it again is its key, from the
// record's end.
void forget_disturbed_frame(ThreadState& state, const StackChange& change) {
  const uint32_t length = change.committed & ARCTRACE_LENGTH_MASK;
  if (change.committed != ARCTRACE_WORD0(ARCTRACE_TYPE_ENTER, length) ||
      change.depth == 0 || change.depth > OpenFrames::kMax) {
    return;
  }
  OpenFrame frame{};
  copy_bytes(&frame.key, change.word0 + length - sizeof frame.key, sizeof frame.key);
  state.open.frames[change.depth - 1] = frame;
}

}  // namespace

void resolve_change(ThreadLocal& local) {
  const StackChange& change = local.change;
  if (change.word0 == nullptr || local.state == nullptr ||
      IpcAtomics::load_relaxed(word_at(change.word0)) != change.committed) {
    return;
  }
  ThreadState& state = *local.state;
  state.open.depth = change.depth;
  if (local.reporting != 0) {
    state.filtered.frames[local.reporting - 1].reporting =
        FilteredFrame::Reporting::kReported;
    local.reporting = 0;
  } else if (local.frame_disturbed) {
    forget_disturbed_frame(state, change);
  }
  local.change.word0 = nullptr;
}

}  // namespace arctrace
