#include "reader/analysis/function_times.hpp"

namespace arctrace::reader {

bool is_timed(uint16_t flags) {
  constexpr unsigned kNotTimed = kFrameExitLost | kFrameEntryLost | kFrameEnteredBefore |
                                 kFrameInherited | kFrameOpen | kFrameResumed |
                                 kFrameCutStart | kFrameCutStop;
  return (flags & kNotTimed) == 0;
}

FunctionTimes::ByFunction& FunctionTimes::group_of(ThreadIndex thread) {
  if (recent_ == nullptr || thread != recent_thread_) {
    std::unique_ptr<ByFunction>& group =
        groups_[group_index(definitions_, grouping_, thread)];
    if (group == nullptr) group = std::make_unique<ByFunction>();
    recent_thread_ = thread;
    recent_ = group.get();
  }
  return *recent_;
}

void FunctionTimes::frame_closed(const FrameInfo& frame, uint64_t /*token*/, bool shown) {
  if (!shown || frame.count > 1 || !is_timed(frame.flags)) return;
  ByFunction& group = group_of(frame.thread);
  if (frame.function >= group.size()) group.resize(frame.function + 1);
  std::unique_ptr<DurationHistogram>& times = group[frame.function];
  if (times == nullptr) times = std::make_unique<DurationHistogram>();
  times->add(frame.duration_ns);
}

const DurationHistogram* FunctionTimes::find(const TreeGroup& group,
                                             FunctionId function) const {
  const auto found = groups_.find(group.index);
  if (found == groups_.end() || function >= found->second->size()) return nullptr;
  return (*found->second)[function].get();
}

}  // namespace arctrace::reader
