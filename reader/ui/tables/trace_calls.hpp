// What one pass over a trace collects for its tables, beside the replay's call trees.
#pragma once

#include "reader/analysis/function_times.hpp"
#include "reader/analysis/lock_table.hpp"
#include "reader/analysis/thread_ends.hpp"
#include "reader/analysis/work_loops.hpp"
#include "reader/render/gap_list.hpp"
#include "reader/replay/replay.hpp"
#include "reader/streams/schedule_log.hpp"
#include "reader/trace/session.hpp"
#include "reader/trace/summary.hpp"

namespace arctrace::reader {

// The listener of the pass. Memory is bounded by the numbers of functions, locks, threads
// and open frames; what threads did is kept in a temporary file, for the critical path.
class TraceCalls : public ReplayListener, public ScheduleListener {
 public:
  // Both must outlive this object; `session` may be null.
  TraceCalls(const Definitions& definitions, const Session* session);
  // To be called before the first record; the replay must outlive this object.
  void begin(const Replay& replay);

  // To be called after the replay's finish(), before anything else is asked for.
  void finish() { locks_.finish(replay_->threads()); }

  const FunctionTimes& times() const { return times_; }
  const LockTable& locks() const { return locks_; }
  const ThreadEnds& ends() const { return ends_; }
  const WorkLoops& loops() const { return loops_; }
  // Null: it is not known which thread woke which.
  ScheduleLog* log() { return has_wake_ups_ ? &log_ : nullptr; }

  // The others need no token.
  uint64_t frame_opened(const FrameInfo& frame) override {
    ends_.frame_opened(frame);
    if (has_wake_ups_) loops_.frame_opened(frame);
    return locks_.frame_opened(frame);
  }
  void frame_closed(const FrameInfo& frame, uint64_t token, bool shown) override {
    times_.frame_closed(frame, token, shown);
    ends_.frame_closed(frame, token, shown);
    locks_.frame_closed(frame, token, shown);
  }
  void frame_adopted(const FrameInfo& /*frame*/) override {}
  void point(const PointInfo& /*point*/) override {}
  void args(const ArgsInfo& args) override { locks_.args(args); }
  void signal_came(const SignalInfo& signal) override { ends_.signal_came(signal); }
  void state_ended(const StateInfo& state) override {
    loops_.state_ended(state);
    log_.state_ended(state);
  }
  void time_passed(const PathTime& time) override { log_.time_passed(time); }
  void thread_made(const ThreadMade& made) override {
    loops_.thread_made(made);
    log_.thread_made(made);
  }

 private:
  const Replay* replay_ = nullptr;
  const Session* const session_;
  const bool has_wake_ups_;
  FunctionTimes times_;
  LockTable locks_;
  ThreadEnds ends_;
  WorkLoops loops_;
  ScheduleLog log_;
};

// A finished pass. What is null is not known.
struct FinishedPass {
  Replay& replay;
  TraceCalls& calls;
  const Session* session = nullptr;
  const Summary* summary = nullptr;
  const GapList* gaps = nullptr;
};

}  // namespace arctrace::reader
