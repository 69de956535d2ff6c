// Calls as one piece each, with args and retval: for exporters that write a call when it
// ends.
#pragma once

#include <absl/container/flat_hash_map.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "reader/export/exporter.hpp"
#include "reader/replay/listener.hpp"

namespace arctrace::reader {

struct WholeCall {
  FrameInfo frame;
  // False: the call did not return in what is exported, because the trace or the time
  // range ends before. Then `frame` has the times up to that end.
  bool has_ended = true;
  // The call began before tracing did, and was found when it ended.
  bool is_adopted = false;
  uint64_t token = 0;  // tells calls apart; 0: it is adopted
  // The token of the call's caller, if that began in the same nanosecond; else 0.
  uint64_t began_with = 0;
  // Texts that CallSink::describe() made of its records; empty if there are none.
  std::string args, retval;
};

class CallSink {
 public:
  virtual ~CallSink() = default;

  // Returns the args or retval of a call, in the form in which WholeCall is to have them.
  virtual std::string describe(const Record& record) = 0;

  // Called when a call begins. Unless the call is filtered out, call() follows.
  virtual void call_began(const FrameInfo& /*frame*/) {}
  // Calls that end come in the order of their ends, the others last.
  virtual void call(const WholeCall& call) = 0;
  virtual void point(const PointInfo& point) = 0;
};

// The listener that makes whole calls. Memory is bounded by the number of open calls.
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

  struct Open {
    uint64_t token;
    int64_t start_ns;
  };
  using Stack = std::vector<Open>;

  Stack& stack_of(const FrameInfo& frame);
  uint64_t begin(const FrameInfo& frame);
  void end(const FrameInfo& frame, WholeCall& call);
  void add(WholeCall& call);

  CallSink& sink_;
  // The open calls on the stacks of threads, by ThreadIndex, and of coroutines.
  std::vector<Stack> stacks_;
  absl::flat_hash_map<std::pair<ThreadIndex, uint32_t>, Stack> coroutines_;
  uint64_t last_token_ = 0;
  absl::flat_hash_map<uint64_t, Content> contents_;  // of open calls, by token
  std::vector<WholeCall> open_;
};

// The common part of exporters that write whole calls, points, and the states of threads.
// The exporter is its own sink. It calls finish_calls() in finish().
class CallExporter : public Exporter, protected CallSink, private ScheduleListener {
 public:
  explicit CallExporter(const ExportSettings& settings)
      : settings_(settings), calls_(*this) {}

  ReplayListener* call_listener() override { return &calls_; }
  ScheduleListener* schedule_listener() override { return this; }

 protected:
  const ExportSettings& settings() const { return settings_; }
  // Adds the calls that did not end.
  void finish_calls() { calls_.finish(); }

 private:
  const ExportSettings settings_;
  WholeCalls calls_;
};

}  // namespace arctrace::reader
