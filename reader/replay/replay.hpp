// The replay: makes call trees from a trace's records, by the stack of each thread.
#pragma once

#include <absl/container/flat_hash_map.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "reader/replay/call_tree.hpp"
#include "reader/replay/kernel_records.hpp"
#include "reader/replay/thread_stack.hpp"

namespace arctrace::reader {

struct ReplayOptions {
  ReplayFilter filter;
  // Whether a thread is replayed; the records of others are ignored. Empty: all threads.
  std::function<bool(ThreadIndex)> wants_thread;
  // Whether threads that only the kernel's records name are included.
  bool all_threads = false;
  // Whether the kernel's records, if there are any, include wake-ups.
  bool has_wake_ups = true;
  // The knowledge of a replay of the records before these: whether there were records of
  // the kernel, and its own_numbers().
  bool had_dispatches = false;
  OwnNumbers own_numbers;
  ReportClock clock = ReportClock::kWall;
  ReplayListener* listener = nullptr;
  ScheduleListener* schedule = nullptr;
  size_t max_findings = 1000;  // kept; all are counted
  // The clock map of the trace, which must outlive the replay. Without it, the begins of
  // losses are not known.
  const ClockMap* ticks = nullptr;
  uint32_t mode = 0;  // enum arctrace_mode of the session
  // The cost of recording, as the trace has it, and whether it is taken off all times.
  std::span<const arctrace_hook_cost> hook_costs = {};
  bool is_corrected = false;
  bool full_names = false;  // functions are shown by their whole names
};

// Replays the records of a trace. Adding one takes constant time on average. Memory is
// bounded by the number of distinct stacks and of open frames, not by the number of
// records.
class Replay {
 public:
  // `definitions` must be complete. They, the listeners, and `symbolizer`, which may be
  // nullptr, must outlive this object.
  Replay(const Definitions& definitions, Symbolizer* symbolizer,
         ReplayOptions options = {});

  // Adds the trace's next record. Trace::read has them in the right order.
  void add(const Record& record);

  // To be called before the first record of the kernel: the replay of the records before
  // these knew that the thread is in this state, which began at state.start_ns.
  void go_on(ThreadIndex thread, int64_t time_ns, const StateInfo& state);
  // To be called before go_on(), and after the thread's own frames are known: the thread
  // is in the kernel's frame that such a record opened. That is no new call.
  void go_on_in_kernel(const Record& record);
  // Returns what the thread does now, and since when, for another replay that goes on
  // from here. nullopt: there are no records of the kernel, or nothing is known of the
  // thread.
  std::optional<StateInfo> state_of(ThreadIndex thread) const;
  const OwnNumbers& own_numbers() const { return dispatches_.own_numbers(); }

  // To be called once, after the last record.
  void finish();

  // REQUIRES: finish() was called. The threads that have a part in the filter's time
  // range, by index.
  std::span<const ThreadTree> threads() const { return threads_; }
  // REQUIRES: finish() was called. The CPUs' `Interrupt` threads, by CPU. They are in the
  // tree as well.
  std::span<const ThreadTree> interrupts() const { return interrupts_.trees(); }
  const CallTree& tree() const { return state_.tree; }
  const Functions& functions() const { return state_.resolver.functions(); }
  ShownNames& shown_names() { return state_.resolver.shown_names(); }
  FunctionResolver& resolver() { return state_.resolver; }
  const Definitions& definitions() const { return state_.definitions; }
  // Whether the kernel's records say when threads had a CPU.
  bool has_dispatches() const { return state_.has_dispatches; }
  KnownTimes known_times() const;
  // Whether the costs of recording are known; whether they were taken off.
  bool knows_costs() const { return state_.costs.is_known(); }
  const HookCosts& costs() const { return state_.costs; }
  ReportClock clock() const { return state_.clock; }
  bool is_corrected() const { return state_.is_corrected; }
  const ReplayTotals& totals() const { return state_.totals; }
  // The time of the last record that was added; INT64_MIN: there was none.
  int64_t last_record_ns() const { return last_ns_; }

  // How the process ended, as wait() reports it; nullopt: neither its recorder nor the
  // kernel has recorded it.
  std::optional<int32_t> wait_status(ProcessIndex process) const;

  // Whether no thread was filtered out, with functions that nothing else calls.
  bool has_all_threads() const { return !wants_thread_; }
  // Whether neither a thread nor a time was filtered out.
  bool is_of_all() const { return has_all_threads() && !state_.filter.has_range(); }

  // Whether no call was hidden for another reason than its time.
  bool has_all_calls() const { return !state_.filter.has_calls(); }

  // Records that contradict each other: breaches of rules S1 to S3.
  const std::vector<Finding>& findings() const { return state_.findings.kept(); }
  uint64_t finding_count() const { return state_.findings.count(); }

 private:
  ThreadStack* stack_of(ThreadIndex thread);
  ThreadStack* stack_of_kernel(ThreadIndex thread);
  void add_residual_loss(const Record& record, const arctrace_lost_body& lost);
  void enabled(const Record& record);
  void leave_kernel_frames(const Record& record, uint32_t gate);
  bool has_life(ThreadIndex thread) const;
  void add_silent_programs();
  void session_point(const Record& record);

  void note_forks_until(int64_t time_ns);
  ThreadStack* parent_of(ThreadIndex child);
  void inherit(ThreadIndex child, ThreadStack& stack);
  void enter_waiting_until(int64_t time_ns);
  void apply(const Record& record);

  ReplayState state_;
  // The state of threads that are filtered out and have fork children, which need their
  // frames.
  ReplayState hidden_;
  Dispatches dispatches_;
  std::function<bool(ThreadIndex)> wants_thread_;
  Interrupts interrupts_;
  bool has_wake_ups_;
  uint32_t kernel_frames_ = 0;   // the recorded events that make frames
  int64_t last_ns_ = INT64_MIN;  // of all records
  struct Entry {
    bool known = false;                  // wants_thread_ was asked
    bool hidden = false;                 // filtered out; there is a stack all the same
    std::unique_ptr<ThreadStack> stack;  // nullptr: filtered out
  };
  std::vector<Entry> entries_;  // by ThreadIndex
  // The threads of processes that have forked.
  absl::flat_hash_map<ProcessIndex, std::vector<ThreadIndex>> threads_of_parents_;
  // The first threads of processes that were forked at a known time, in order of time;
  // the next one; and the open frames of the thread that forked, by child, until the
  // child begins.
  std::vector<std::pair<int64_t, ThreadIndex>> forks_;
  size_t next_fork_ = 0;
  absl::flat_hash_map<ThreadIndex, ThreadStack::ForkPoint> fork_points_;
  // Calls that their threads have not recorded, in order of time; the next one.
  std::vector<std::pair<WaitingCall, ThreadIndex>> waiting_;
  size_t next_waiting_ = 0;
  std::vector<ThreadTree> threads_;
};

}  // namespace arctrace::reader
