// The calls that failed, by function and errno.
#pragma once

#include <absl/container/flat_hash_map.h>

#include <cstdint>
#include <utility>
#include <vector>

#include "reader/replay/listener.hpp"

namespace arctrace::reader {

// The calls of a function that failed with one errno.
struct FailedCalls {
  FunctionId function = kRootFunction;
  int64_t error = 0;      // the errno
  uint64_t errors = 0;    // calls that failed with it
  uint64_t results = 0;   // calls of the function whose result is recorded
  uint64_t total_ns = 0;  // of the calls that failed with it
  uint64_t longest_ns = 0;
  int64_t first_ns = 0;  // when the first of them ended
};

// A listener that counts failed calls: those whose RESULT has an errno, and system calls
// that returned one. Memory is bounded by the number of functions, of errnos, and of open
// frames.
class ErrorCounts : public ReplayListener {
 public:
  // REQUIRES: the replay is finished. In no order.
  std::vector<FailedCalls> failed() const;
  // The number of calls whose result is recorded.
  uint64_t results() const { return results_; }

  uint64_t frame_opened(const FrameInfo& /*frame*/) override { return ++last_token_; }
  void frame_closed(const FrameInfo& frame, uint64_t token, bool shown) override;
  void frame_adopted(const FrameInfo& /*frame*/) override {}
  void point(const PointInfo& /*point*/) override {}
  void args(const ArgsInfo& args) override;
  void syscall_succeeded(uint64_t token) override { open_[token] = 0; }

 private:
  uint64_t last_token_ = 0;
  uint64_t results_ = 0;
  // By token: the errno of an open frame whose result is known; 0: it succeeded.
  absl::flat_hash_map<uint64_t, int64_t> open_;
  absl::flat_hash_map<FunctionId, uint64_t> results_of_;
  absl::flat_hash_map<std::pair<FunctionId, int64_t>, FailedCalls> failed_;
};

}  // namespace arctrace::reader
