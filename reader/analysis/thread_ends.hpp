// Where threads were when the trace ended, for programs that were killed.
#pragma once

#include <absl/container/flat_hash_map.h>

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
  // Its last call that ended, other than the delivery of a signal.
  FunctionId last_function = kRootFunction;
  int64_t last_start_ns = 0, last_stop_ns = 0;
  int64_t last_ns = INT64_MIN;  // of its last record that began or ended a call
};

// A signal that the kernel delivered, and the frames that it came upon.
struct SignalSeen {
  FunctionId signal = kRootFunction;  // the function that stands for its delivery
  ThreadIndex thread = kNoIndex;
  int64_t time_ns = 0;
  std::vector<FunctionId> path;
  // The function whose instruction the thread was at; kRootFunction: that is not
  // recorded.
  FunctionId at = kRootFunction;
};

// A listener that tracks the stacks. Memory is bounded by that of open frames.
class ThreadEnds : public ReplayListener {
 public:
  // Whether a function stands for the delivery of a signal, and whether it is the one in
  // question.
  enum class Signal : uint8_t { kNone, kOther, kWanted };
  using SignalOf = std::function<Signal(FunctionId)>;

  explicit ThreadEnds(SignalOf signal_of) : signal_of_(std::move(signal_of)) {}

  // Null if the thread has made no call.
  const ThreadEnd* find(ThreadIndex thread) const {
    return thread < threads_.size() ? &threads_[thread].end : nullptr;
  }
  // The last signal that came upon the thread; null: none did.
  const SignalSeen* last_signal(ThreadIndex thread) const {
    return thread < threads_.size() && threads_[thread].last_signal.has_value()
               ? &*threads_[thread].last_signal
               : nullptr;
  }
  // The last wanted signal.
  const std::optional<SignalSeen>& signal_seen() const { return seen_; }

  uint64_t frame_opened(const FrameInfo& frame) override;
  void frame_closed(const FrameInfo& frame, uint64_t token, bool shown) override;
  void frame_adopted(const FrameInfo& /*frame*/) override {}
  void point(const PointInfo& /*point*/) override {}
  void signal_came(const SignalInfo& signal) override { last_came_ = signal; }

 private:
  struct Thread {
    absl::flat_hash_map<uint32_t, std::vector<FunctionId>> stacks;  // by coroutine
    bool is_closing = false;                                        // the trace has ended
    ThreadEnd end;
    std::optional<SignalSeen> last_signal;
  };

  Signal signal(FunctionId function);

  const SignalOf signal_of_;
  std::vector<std::optional<Signal>> signals_;  // by FunctionId
  std::vector<Thread> threads_;                 // by ThreadIndex
  std::optional<SignalInfo> last_came_;
  std::optional<SignalSeen> seen_;
};

}  // namespace arctrace::reader
