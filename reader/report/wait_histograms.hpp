// How long woken threads waited for a CPU, and how long requests to block devices took.
#pragma once

#include <absl/container/btree_map.h>
#include <absl/container/flat_hash_map.h>

#include <cstdint>
#include <utility>

#include "reader/analysis/duration_histogram.hpp"
#include "reader/replay/listener.hpp"
#include "reader/replay/schedule_listener.hpp"

namespace arctrace::reader {

// Memory is bounded by the number of requests that are under way, and by kRequestsMax.
class WaitHistograms : public ReplayListener, public ScheduleListener {
 public:
  // From being woken to having a CPU.
  const DurationHistogram& run_queue() const { return run_queue_; }
  // Whole requests, by the kernel's operation (0 read, 1 write, 2 flush, 3 discard).
  const absl::btree_map<uint32_t, DurationHistogram>& requests() const {
    return requests_;
  }

  uint64_t frame_opened(const FrameInfo& /*frame*/) override { return 0; }
  void frame_closed(const FrameInfo& /*frame*/, uint64_t /*token*/,
                    bool /*shown*/) override {}
  void frame_adopted(const FrameInfo& /*frame*/) override {}
  void point(const PointInfo& point) override;
  void state_ended(const StateInfo& state) override;

 private:
  static constexpr size_t kRequestsMax = 65536;  // whose ends are waited for

  struct Request {
    int64_t since_ns;
    uint32_t bytes_left;
  };

  DurationHistogram run_queue_;
  absl::btree_map<uint32_t, DurationHistogram> requests_;
  absl::flat_hash_map<std::pair<uint32_t, uint64_t>, Request> open_;  // device, sector
};

}  // namespace arctrace::reader
