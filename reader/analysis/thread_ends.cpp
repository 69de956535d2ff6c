#include "reader/analysis/thread_ends.hpp"

#include <algorithm>

namespace arctrace::reader {

ThreadEnds::Signal ThreadEnds::signal(FunctionId function) {
  if (function >= signals_.size()) signals_.resize(function + 1);
  std::optional<Signal>& known = signals_[function];
  if (!known.has_value()) known = signal_of_(function);
  return *known;
}

uint64_t ThreadEnds::frame_opened(const FrameInfo& frame) {
  if (frame.thread >= threads_.size()) threads_.resize(frame.thread + 1);
  std::vector<FunctionId>& stack = threads_[frame.thread].stacks[frame.coroutine];
  stack.resize(frame.depth - 1);
  if (const Signal which = signal(frame.function); which != Signal::kNone) {
    const bool has_place = last_came_.has_value() && last_came_->thread == frame.thread &&
                           last_came_->time_ns == frame.time_ns;
    SignalSeen seen = {frame.function, frame.thread, frame.time_ns, stack,
                       has_place ? last_came_->function : kRootFunction};
    if (which == Signal::kWanted) seen_ = seen;
    threads_[frame.thread].last_signal = std::move(seen);
  }
  stack.push_back(frame.function);
  threads_[frame.thread].end.last_ns = frame.time_ns;
  return 0;
}

void ThreadEnds::frame_closed(const FrameInfo& frame, uint64_t /*token*/,
                              bool /*shown*/) {
  if (frame.thread >= threads_.size()) return;
  Thread& thread = threads_[frame.thread];
  if ((frame.flags & kFrameOpen) != 0) {
    // Open frames close innermost first, so the first one sees the whole stack.
    if (!thread.is_closing) {
      const std::vector<FunctionId>& stack = thread.stacks[frame.coroutine];
      const auto depth = std::min<size_t>(frame.depth, stack.size());
      thread.end.open.assign(stack.begin(),
                             stack.begin() + static_cast<std::ptrdiff_t>(depth));
    }
    thread.is_closing = true;
    return;
  }
  thread.end.last_ns = frame.time_ns;
  if (signal(frame.function) != Signal::kNone) return;
  thread.end.last_function = frame.function;
  thread.end.last_start_ns = frame.start_ns;
  thread.end.last_stop_ns = frame.stop_ns;
}

}  // namespace arctrace::reader
