// The page's facts of a trace, or of a range of it, as one replay collects them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "reader/analysis/function_times.hpp"
#include "reader/analysis/slowest_of_each.hpp"
#include "reader/analysis/thread_ends.hpp"
#include "reader/analysis/work_loops.hpp"
#include "reader/replay/replay.hpp"
#include "reader/report/view.hpp"
#include "reader/ui/model/exact_times.hpp"
#include "reader/ui/model/page_critical.hpp"
#include "reader/ui/model/timeline.hpp"

namespace arctrace::reader {

// The listener of that replay. Memory is bounded by max_items of the time line, and by
// the numbers of functions, locks and threads; what threads did is stored in a temporary
// file, for the critical path.
class PageParts : public ReplayListener, public ScheduleListener {
 public:
  // `definitions` must outlive this object. `exact`: the ranges of which every call is
  // wanted, as far as max_items allows.
  PageParts(const Definitions& definitions, size_t max_items,
            std::vector<ExactRange> exact = {});
  // To be called before begin(): calls on the path are wanted, too.
  void set_path(const CriticalPath& path) { exact_.set_path(path); }
  const ExactTimes& exact() const { return exact_; }
  // To be called before the first record; both must outlive this object. `session` may be
  // null.
  void begin(Replay& replay, const Session* session);
  // To be called after the last record.
  void finish() { timeline_.rows().sort(); }

  Timeline& timeline() { return timeline_; }
  const Timeline& timeline() const { return timeline_; }
  const FunctionTimes& times() const { return times_; }
  // Writes the same members as `report --view=locks --format=json`.
  absl::Status write_locks_json(Replay& replay, JsonWriter& json) {
    return locks_->write_json(replay, json);
  }
  const SlowestOfEach& slowest() const { return slowest_; }
  const ThreadEnds& ends() const { return ends_; }
  // The loops in which threads wait for work; none if it is not known what woke threads.
  Serving serving() const { return has_wake_ups_ ? loops_.find() : Serving{}; }
  PageCritical& critical() { return critical_; }

  // The other listeners need no token.
  uint64_t frame_opened(const FrameInfo& frame) override {
    critical_.frame_opened(frame);
    ends_.frame_opened(frame);
    if (has_wake_ups_) loops_.frame_opened(frame);
    return lock_listener_->frame_opened(frame);
  }
  void frame_closed(const FrameInfo& frame, uint64_t token, bool shown) override {
    timeline_.frame_closed(frame, token, shown);
    times_.frame_closed(frame, token, shown);
    slowest_.frame_closed(frame, token, shown);
    ends_.frame_closed(frame, token, shown);
    lock_listener_->frame_closed(frame, token, shown);
  }
  void frame_adopted(const FrameInfo& frame) override { timeline_.frame_adopted(frame); }
  void point(const PointInfo& /*point*/) override {}
  void part_ended(const FrameInfo& part) override { timeline_.part_ended(part); }
  void args(const ArgsInfo& args) override { lock_listener_->args(args); }
  void signal_came(const SignalInfo& signal) override { ends_.signal_came(signal); }
  void state_ended(const StateInfo& state) override {
    timeline_.state_ended(state);
    if (has_wake_ups_) loops_.state_ended(state);
    critical_.state_ended(state);
  }
  void time_passed(const PathTime& time) override { critical_.time_passed(time); }
  void thread_made(const ThreadMade& made) override {
    if (has_wake_ups_) loops_.thread_made(made);
    critical_.thread_made(made);
  }

 private:
  ExactTimes exact_;
  Timeline timeline_;
  FunctionTimes times_;
  const std::unique_ptr<View> locks_;
  ReplayListener* const lock_listener_;
  SlowestOfEach slowest_;
  PageCritical critical_;
  const Replay* replay_ = nullptr;
  const Session* session_ = nullptr;
  bool has_wake_ups_ = false;
  ThreadEnds ends_;
  WorkLoops loops_;
};

}  // namespace arctrace::reader
