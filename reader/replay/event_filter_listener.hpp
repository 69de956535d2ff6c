// A listener that gets only those events of the API which a filter admits, and all else.
#pragma once

#include "reader/replay/listener.hpp"
#include "reader/trace/event_filter.hpp"

namespace arctrace::reader {

// The filter counts what it leaves out of what the replay reports: the events of the
// threads and times that are shown.
class EventFilterListener : public ReplayListener {
 public:
  // Both must outlive this object.
  EventFilterListener(ReplayListener& next, EventFilter& filter)
      : next_(next), filter_(filter) {}

  uint64_t frame_opened(const FrameInfo& frame) override {
    return next_.frame_opened(frame);
  }
  void frame_closed(const FrameInfo& frame, uint64_t token, bool shown) override {
    next_.frame_closed(frame, token, shown);
  }
  void frame_adopted(const FrameInfo& frame) override { next_.frame_adopted(frame); }
  void point(const PointInfo& point) override {
    if (filter_.admits(*point.record)) next_.point(point);
  }
  void args(const ArgsInfo& args) override { next_.args(args); }
  void signal_came(const SignalInfo& signal) override { next_.signal_came(signal); }

 private:
  ReplayListener& next_;
  EventFilter& filter_;
};

}  // namespace arctrace::reader
