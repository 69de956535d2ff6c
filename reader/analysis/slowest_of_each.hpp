// The slowest calls of each function: where they are, so that one can go there.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "reader/replay/listener.hpp"

namespace arctrace::reader {

// A call by its place on a stack, and its times.
struct PlacedCall {
  ThreadIndex thread = kNoIndex;
  uint32_t coroutine = 0, depth = 0;
  uint16_t flags = 0;  // enum FrameFlag
  int64_t start_ns = 0, stop_ns = 0;
  uint64_t duration_ns = 0;  // on the report's clock
  uint64_t off_ns = 0, unknown_ns = 0;
};

// A listener that keeps kMax calls of each function. Those that were entered before
// tracing began are not among them, because their begin is not known.
class SlowestOfEach : public ReplayListener {
 public:
  static constexpr size_t kMax = 12;

  // Returns at most `limit` calls, the slowest first; of equal ones, the one that began
  // first. An empty list: none was shown.
  std::vector<PlacedCall> of(FunctionId function, size_t limit = kMax) const;
  // The functions that have calls have ids below this one.
  size_t function_count() const { return calls_.size(); }

  uint64_t frame_opened(const FrameInfo& /*frame*/) override { return 0; }
  void frame_closed(const FrameInfo& frame, uint64_t token, bool shown) override;
  void frame_adopted(const FrameInfo& /*frame*/) override {}
  void point(const PointInfo& /*point*/) override {}

 private:
  std::vector<std::vector<PlacedCall>> calls_;  // heaps, the fastest in front
};

}  // namespace arctrace::reader
