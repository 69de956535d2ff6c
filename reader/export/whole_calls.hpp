// Calls as one piece each, with args and retval: for exporters that write a call when it
// ends.
#pragma once

#include <absl/container/flat_hash_map.h>

#include <cstdint>
#include <string>
#include <vector>

#include "reader/replay/listener.hpp"

namespace arctrace::reader {

struct WholeCall {
  FrameInfo frame;
  // False: it was not left in what is exported, because the trace or the time range ends
  // before. Then `frame` has the times up to there.
  bool has_ended = true;
  // CallSink::describe() of its records; empty if there are none.
  std::string args, retval;
};

class CallSink {
 public:
  virtual ~CallSink() = default;

  // The args or retval of a call in the form that this sink wants to find in WholeCall.
  virtual std::string describe(const Record& record) = 0;

  // A call begins, of which call() tells later unless it is filtered out.
  virtual void call_began(const FrameInfo& /*frame*/) {}
  // Calls that end come in the order of their ends, the others last.
  virtual void call(const WholeCall& call) = 0;
  virtual void point(const PointInfo& point) = 0;
};

// The listener that makes them. Memory is bounded by the number of open calls.
class WholeCalls : public ReplayListener {
 public:
  // `sink` must outlive this object.
  explicit WholeCalls(CallSink& sink) : sink_(sink) {}

  // Adds the calls that did not end, in the order of their beginnings: calls within one
  // another outermost first. To be called after the replay's finish().
  void finish();

  uint64_t frame_opened(const FrameInfo& frame) override;
  void frame_closed(const FrameInfo& frame, uint64_t token, bool shown) override;
  void frame_adopted(const FrameInfo& frame) override;
  void point(const PointInfo& point) override { sink_.point(point); }
  void args(const ArgsInfo& args) override;

 private:
  struct Content {
    std::string args, retval;
  };

  void add(WholeCall& call);

  CallSink& sink_;
  uint64_t last_token_ = 0;
  absl::flat_hash_map<uint64_t, Content> contents_;  // of open calls, by token
  std::vector<WholeCall> open_;
};

}  // namespace arctrace::reader
