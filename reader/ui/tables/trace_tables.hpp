// The tables of a trace: those of each view, and those of a single function.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "reader/analysis/function_times.hpp"
#include "reader/analysis/function_totals.hpp"
#include "reader/analysis/lock_table.hpp"
#include "reader/analysis/slowest_calls.hpp"
#include "reader/analysis/thread_ends.hpp"
#include "reader/analysis/tree_groups.hpp"
#include "reader/analysis/work_loops.hpp"
#include "reader/render/gap_list.hpp"
#include "reader/render/labels.hpp"
#include "reader/replay/replay.hpp"
#include "reader/report/summary_lines.hpp"
#include "reader/streams/schedule_log.hpp"
#include "reader/trace/session.hpp"
#include "reader/ui/tables/table.hpp"

namespace arctrace::reader {

// The listener of the pass. Memory is bounded by the numbers of functions, locks, threads
// and open frames; what threads did is stored in a temporary file, for the critical path.
class TraceCalls : public ReplayListener, public ScheduleListener {
 public:
  // Both must outlive this object; `session` may be null.
  TraceCalls(const Definitions& definitions, const Session* session);
  // To be called before the first record; the replay must outlive this object.
  void begin(const Replay& replay);

  // To be called after the replay's finish(), before all else.
  void finish() { locks_.finish(replay_->threads()); }

  const FunctionTimes& times() const { return times_; }
  const LockTable& locks() const { return locks_; }
  const ThreadEnds& ends() const { return ends_; }
  const WorkLoops& loops() const { return loops_; }
  // Returns null if it is not known which thread woke which.
  ScheduleLog* log() { return has_wake_ups_ ? &log_ : nullptr; }

  // The other listeners need no token.
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

// A finished pass. Null members are not known.
struct FinishedPass {
  Replay& replay;
  TraceCalls& calls;
  const Session* session = nullptr;
  const Summary* summary = nullptr;
  const GapList* gaps = nullptr;
};

using TableList = std::vector<std::unique_ptr<Table>>;

// The slowest calls of a function, and the number of all its calls.
struct SlowestOfFunction {
  std::vector<SlowCall> calls;
  uint64_t count = 0;
};

// Makes the tables; it must outlive them. All numbers are those of `arctrace report` with
// the same filters.
class TraceTables {
 public:
  // `facts` and what they refer to must outlive this object.
  explicit TraceTables(const FinishedPass& facts);

  // Makes the view "summary" of a report, with all of its parts.
  TableList summary();
  TableList functions();
  TableList tree(Grouping grouping);
  TableList threads();
  TableList locks();
  TableList critical_path();
  // Tables about a function, its callers and callees, and its slowest calls. Null: these
  // have not been read yet.
  TableList function(FunctionId function, const SlowestOfFunction* slowest);

  // Returns in one line what the trace is of and what is missing in it. `has_trouble`:
  // something is missing.
  std::string status(bool& has_trouble) const;

  FunctionLabels& labels() { return labels_; }
  const FinishedPass& facts() const { return facts_; }

 private:
  const TreeGroup& all() const { return groups_.groups().front(); }
  bool is_empty() const { return facts_.replay.threads().empty(); }
  // `group`: all(), or the part of the time on which the summary is based.
  SummaryFacts summary_facts(const TreeGroup& group);
  const FunctionArcs* arcs_of(FunctionId function);
  std::unique_ptr<Table> function_facts(const FunctionArcs& arcs);
  std::unique_ptr<Table> slowest_calls(const SlowestOfFunction& slowest);

  const FinishedPass facts_;
  FunctionLabels labels_;
  const TreeGroups groups_;  // all threads as one
  const Serving serving_;
  const BusyGroup busy_;
  std::optional<std::vector<FunctionArcs>> arcs_;
};

// The table that stands for all others if no thread passes the filters.
TableList nothing_to_show();

}  // namespace arctrace::reader
