// The calls of some functions that took the longest, with what they were called with and
// from where.
#pragma once

#include <absl/container/flat_hash_map.h>

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "reader/analysis/tree_groups.hpp"
#include "reader/replay/listener.hpp"

namespace arctrace::reader {

struct SlowCall {
  FrameInfo frame;
  std::string args, retval;  // as `describe` made them; empty if not recorded
  std::vector<FunctionId>
      path;  // the shown frames around it, outermost first, and itself
};

// A listener that keeps the slowest calls. Memory is bounded by their number and by that
// of open frames.
class SlowestCalls : public ReplayListener {
 public:
  // Makes the text that a call shows of an ARGUMENTS or RESULT record.
  using Describe = std::function<std::string(const Record&)>;
  using Wants = std::function<bool(FunctionId)>;

  // Collects at most `limit` calls of the functions that `wants` accepts, which is asked
  // once for each. `sort`: kTotal or kSelf.
  SlowestCalls(Wants wants, Describe describe, SortKey sort, uint64_t limit)
      : wants_(std::move(wants)),
        describe_(std::move(describe)),
        sort_(sort),
        limit_(limit) {}

  // REQUIRES: the replay is finished. The slowest call comes first; of equal ones, the
  // one that ended first.
  std::vector<SlowCall> take();
  // The number of all calls of the functions.
  uint64_t count() const { return count_; }

  uint64_t frame_opened(const FrameInfo& frame) override;
  void frame_closed(const FrameInfo& frame, uint64_t token, bool shown) override;
  void frame_adopted(const FrameInfo& frame) override;
  void point(const PointInfo& /*point*/) override {}
  void args(const ArgsInfo& args) override;

 private:
  struct Texts {
    std::string args, retval;
  };
  struct Ranked {
    uint64_t time_ns;
    uint64_t number;  // counts the calls as they end
    SlowCall call;
  };

  static bool is_slower(const Ranked& a, const Ranked& b);
  bool wants(FunctionId function);
  void offer(const FrameInfo& frame, Texts texts, std::vector<FunctionId> path);

  const Wants wants_;
  const Describe describe_;
  const SortKey sort_;
  const uint64_t limit_;
  uint64_t count_ = 0;
  uint64_t next_token_ = 1;     // 0: of calls that are not wanted
  std::vector<int8_t> wanted_;  // by FunctionId; -1: not asked yet
  // By thread and coroutine.
  absl::flat_hash_map<std::pair<ThreadIndex, uint32_t>, std::vector<FunctionId>> stacks_;
  absl::flat_hash_map<uint64_t, Texts> open_;  // by token, if there are any
  std::vector<Ranked> slowest_;                // a heap, the fastest of them at the front
};

}  // namespace arctrace::reader
