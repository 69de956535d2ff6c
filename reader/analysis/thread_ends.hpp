// Where threads were when the trace ended, for programs that were killed.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "reader/replay/listener.hpp"

namespace arctrace::reader {

// One thread at its end.
struct ThreadEnd {
  std::vector<FunctionId> open;  // its open frames, outermost first
  // Its last call that ended.
  FunctionId last_function = kRootFunction;
  int64_t last_start_ns = 0, last_stop_ns = 0;
};

// A signal that the kernel delivered, and the frames that it came upon.
struct SignalSeen {
  ThreadIndex thread = kNoIndex;
  int64_t time_ns = 0;
  std::vector<FunctionId> path;
};

// A listener that follows the stacks. Memory is bounded by that of open frames.
class ThreadEnds : public ReplayListener {
 public:
  // Whether a function stands for the delivery of the signal in question.
  using IsSignal = std::function<bool(FunctionId)>;

  explicit ThreadEnds(IsSignal is_signal) : is_signal_(std::move(is_signal)) {}

  // Null if the thread has made no call.
  const ThreadEnd* find(ThreadIndex thread) const {
    return thread < threads_.size() ? &threads_[thread].end : nullptr;
  }
  // The last one.
  const std::optional<SignalSeen>& signal() const { return signal_; }

  uint64_t frame_opened(const FrameInfo& frame) override;
  void frame_closed(const FrameInfo& frame, uint64_t token, bool shown) override;
  void frame_adopted(const FrameInfo& /*frame*/) override {}
  void point(const PointInfo& /*point*/) override {}

 private:
  struct Thread {
    std::vector<FunctionId> stack;
    bool is_closing = false;  // the trace has ended
    ThreadEnd end;
  };

  const IsSignal is_signal_;
  std::vector<int8_t> signals_;  // by FunctionId; -1: not asked yet
  std::vector<Thread> threads_;  // by ThreadIndex
  std::optional<SignalSeen> signal_;
};

}  // namespace arctrace::reader
