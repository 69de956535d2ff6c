// From a trace's records to call trees: each thread's stack, and the time spent on it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "reader/replay/dispatches.hpp"
#include "reader/replay/thread_stack.hpp"

namespace arctrace::reader {

struct ReplayOptions {
  ReplayFilter filter;
  // Which threads are replayed; the others' records are left out. None: all.
  std::function<bool(ThreadIndex)> wants_thread;
  // Threads too that only the kernel's records name.
  bool all_threads = false;
  // Whether the kernel's records, if there are any, tell when a thread is woken.
  bool has_wake_ups = true;
  ReportClock clock = ReportClock::kWall;
  ReplayListener* listener = nullptr;
  ScheduleListener* schedule = nullptr;
  size_t max_findings = 1000;  // kept; all are counted
};

// One replayed thread.
struct ThreadTree {
  ThreadIndex thread;
  NodeIndex root;
  // Of its first and its last record, its own or the kernel's about it, cut at the
  // filter's time range: on the wall clock the root's cum_ns is the difference.
  int64_t start_ns, stop_ns;
};

// Memory is bounded by distinct stacks and open frames, not by the number of records.
class Replay {
 public:
  // `definitions` must be complete, and outlive this object, as `symbolizer` (which may
  // be nullptr) and the listeners must.
  Replay(const Definitions& definitions, Symbolizer* symbolizer,
         ReplayOptions options = {});

  // The trace's next record, as Trace::read hands them out.
  void add(const Record& record);

  // After the last record, once.
  void finish();

  // After finish(), those with anything in the filter's time range, by ThreadIndex.
  std::span<const ThreadTree> threads() const { return threads_; }
  const CallTree& tree() const { return state_.tree; }
  const Functions& functions() const { return state_.resolver.functions(); }
  FunctionResolver& resolver() { return state_.resolver; }
  const Definitions& definitions() const { return state_.definitions; }
  // Whether the kernel told when threads had a CPU.
  bool has_dispatches() const { return state_.has_dispatches; }
  KnownTimes known_times() const;
  const ReplayTotals& totals() const { return state_.totals; }

  // Records that contradict each other.
  const std::vector<Finding>& findings() const { return state_.findings.kept(); }
  uint64_t finding_count() const { return state_.findings.count(); }

 private:
  ThreadStack* stack_of(ThreadIndex thread);
  ThreadStack* stack_of_kernel(ThreadIndex thread);
  void add_loss_of_collector(const Record& record, uint32_t flags);
  void session_point(const Record& record);

  ReplayState state_;
  Dispatches dispatches_;
  std::function<bool(ThreadIndex)> wants_thread_;
  bool has_wake_ups_;
  struct Place {
    bool known = false;                  // asked wants_thread_
    std::unique_ptr<ThreadStack> stack;  // nullptr: not wanted
  };
  std::vector<Place> places_;  // by ThreadIndex
  std::vector<ThreadTree> threads_;
};

}  // namespace arctrace::reader
