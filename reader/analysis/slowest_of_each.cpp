#include "reader/analysis/slowest_of_each.hpp"

#include <algorithm>

namespace arctrace::reader {
namespace {

bool is_slower(const PlacedCall& a, const PlacedCall& b) {
  return a.duration_ns != b.duration_ns ? a.duration_ns > b.duration_ns
                                        : a.start_ns < b.start_ns;
}

}  // namespace

void SlowestOfEach::frame_closed(const FrameInfo& frame, uint64_t /*token*/, bool shown) {
  if (!shown || !is_call(frame.flags)) return;
  if (frame.function >= calls_.size()) calls_.resize(frame.function + 1);
  std::vector<PlacedCall>& slowest = calls_[frame.function];
  const bool is_full = slowest.size() == kMax;
  if (is_full && frame.duration_ns < slowest.front().duration_ns) return;
  const PlacedCall call{frame.thread,      frame.coroutine,  frame.depth,
                        frame.flags,       frame.start_ns,   frame.stop_ns,
                        frame.duration_ns, frame.cpu.off_ns, frame.cpu.unknown_ns};
  if (is_full) {
    if (!is_slower(call, slowest.front())) return;
    std::pop_heap(slowest.begin(), slowest.end(), is_slower);
    slowest.pop_back();
  }
  slowest.push_back(call);
  std::push_heap(slowest.begin(), slowest.end(), is_slower);
}

std::vector<PlacedCall> SlowestOfEach::of(FunctionId function, size_t limit) const {
  if (function >= calls_.size()) return {};
  std::vector<PlacedCall> calls = calls_[function];
  std::sort(calls.begin(), calls.end(), is_slower);
  calls.resize(std::min(calls.size(), limit));
  return calls;
}

}  // namespace arctrace::reader
