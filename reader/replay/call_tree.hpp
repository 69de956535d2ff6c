// Call trees: a node for each distinct stack, with the calls and the time spent there, on
// and off the CPU.
#pragma once

#include <absl/container/flat_hash_map.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "reader/replay/functions.hpp"
#include "reader/trace/record.hpp"

namespace arctrace::reader {

// Whether a thread has a CPU, waits for one, or waits for something else; or the kernel's
// records that would tell are missing.
enum class RunState : uint8_t { kRunning, kReady, kBlocked, kNotKnown };

// Parts of the wall-clock time of a call, a node of a tree, or a thread: cpu_ns, off_ns
// and unknown_ns add up to it.
struct CpuTime {
  uint64_t cpu_ns = 0;      // on a CPU; set once the other times are complete
  uint64_t off_ns = 0;      // not on a CPU
  uint64_t unknown_ns = 0;  // records of the kernel's are missing
  uint64_t ready_ns = 0;    // the part of off_ns in which the thread could have run
  uint64_t switches = 0;    // how often it left the CPU
  // Interrupts that came upon it: all by their own records, else those that woke a
  // thread.
  uint64_t interrupts = 0;

  bool empty() const {
    return cpu_ns == 0 && off_ns == 0 && unknown_ns == 0 && switches == 0 &&
           interrupts == 0;
  }
  // The part of this wall-clock time that was on a CPU, if these are the other parts of
  // it.
  uint64_t cpu_of(uint64_t wall_ns) const { return wall_ns - off_ns - unknown_ns; }
  // The time off the CPU in which it could not have run.
  uint64_t blocked_ns() const { return off_ns - ready_ns; }
  // Adds a time in which the thread was in this state; nothing is added if it ran.
  void add(RunState state, uint64_t time_ns) {
    if (state == RunState::kNotKnown) unknown_ns += time_ns;
    if (state == RunState::kReady || state == RunState::kBlocked) off_ns += time_ns;
    if (state == RunState::kReady) ready_ns += time_ns;
  }
  CpuTime& operator+=(const CpuTime& other) {
    cpu_ns += other.cpu_ns;
    off_ns += other.off_ns;
    unknown_ns += other.unknown_ns;
    ready_ns += other.ready_ns;
    switches += other.switches;
    interrupts += other.interrupts;
    return *this;
  }
  CpuTime& operator-=(const CpuTime& other) {
    cpu_ns -= other.cpu_ns;
    off_ns -= other.off_ns;
    unknown_ns -= other.unknown_ns;
    ready_ns -= other.ready_ns;
    switches -= other.switches;
    interrupts -= other.interrupts;
    return *this;
  }
};

// Which of these times follow from the kernel's records.
enum class KnownTimes : uint8_t {
  kNone,
  kOffCpu,  // not ready_ns: perf events do not say when a blocked thread is woken
  kReady,   // all
};

// The clock on which a report's self and total times are measured.
enum class ReportClock : uint8_t { kWall, kCpu, kOffCpu };

// The share of `wall_ns` that counts on `clock`; `parts` are its parts.
inline uint64_t on_clock(ReportClock clock, uint64_t wall_ns, const CpuTime& parts) {
  switch (clock) {
    case ReportClock::kCpu:
      return parts.cpu_of(wall_ns);
    case ReportClock::kOffCpu:
      return parts.off_ns;
    case ReportClock::kWall:
      break;
  }
  return wall_ns;
}

using NodeIndex = uint32_t;
inline constexpr NodeIndex kNoNode = UINT32_MAX;

struct CallNode {
  NodeIndex parent = kNoNode;
  NodeIndex first_child = kNoNode;
  NodeIndex next_sibling = kNoNode;  // in no particular order
  NodeIndex last_used = kNoNode;     // the child that child() last returned
  FunctionId function = kRootFunction;
  uint32_t marks = 0;        // index in the tree's marks; 0: none
  uint32_t cpu = 0;          // index in the tree's times on and off the CPU; 0: none
  uint64_t calls = 0;        // of a root: threads
  uint64_t self_ns = 0;      // in the function itself
  uint64_t total_ns = 0;     // in it and all it called; set by sum_up
  uint64_t overhead_ps = 0;  // what recording took of self_ns, before that was corrected

  uint64_t overhead_ns() const { return overhead_ps / 1000; }
};

// How many calls of a node were unusual, and in which way.
struct NodeMarks {
  uint64_t unwound = 0;         // abandoned by longjmp, an exception, or in a vfork child
  uint64_t exit_lost = 0;       // no exit was recorded
  uint64_t entry_lost = 0;      // no entry was recorded
  uint64_t entered_before = 0;  // entered before tracing began
  uint64_t inherited = 0;       // on the stack that fork copied; not counted as calls
  uint64_t guessed = 0;         // of the inherited ones, because no record tells them
  uint64_t open = 0;            // not returned when the trace ended
  uint64_t lost_records = 0;    // lost while the node was the innermost
  uint64_t orphan_exits = 0;    // exits that fit no frame, while it was the innermost
  uint64_t at_most = 0;         // calls that may have begun later
  uint64_t unknown_ns = 0;      // time in which the thread's state is not known
  // So much of self_ns may have come after the ends of threads, which are known to within
  // a pass of the collector.
  uint64_t end_within_ns = 0;
  // So much of self_ns may have come before programs were executed, which is known to
  // within the time that it took to start them.
  uint64_t begin_within_ns = 0;

  uint64_t within_ns() const { return end_within_ns + begin_within_ns; }
  void add(const NodeMarks& other);
  bool operator==(const NodeMarks&) const = default;
};

// A forest with a root for each thread, each process, or one for all. Durations are ns in
// unsigned integers, so that the sums of a hostile trace wrap instead of overflowing.
// Adding a child takes constant time on average.
class CallTree {
 public:
  CallTree();

  NodeIndex add_root();

  // The child of `parent` that is a call of `function`; it is added if there is none.
  NodeIndex child(NodeIndex parent, FunctionId function) {
    const NodeIndex recent = nodes_[parent].last_used;
    if (recent != kNoNode && nodes_[recent].function == function) return recent;
    return find_or_add(parent, function);
  }

  // Puts a new root above `root`, which becomes its child, a call of `function`.
  NodeIndex put_above(NodeIndex root, FunctionId function);

  CallNode& operator[](NodeIndex node) { return nodes_[node]; }
  const CallNode& operator[](NodeIndex node) const { return nodes_[node]; }
  size_t size() const { return nodes_.size(); }

  // The marks of a node, for changing them.
  NodeMarks& mark(NodeIndex node);
  // The marks of a node for reading; all are zero if the node has none.
  const NodeMarks& marks(NodeIndex node) const { return marks_[nodes_[node].marks]; }

  // Time on and off the CPU in the function itself, for changing it.
  CpuTime& cpu_time(NodeIndex node) { return own_cpu(node).self; }
  // The same times for reading, and the times in the function and all it called, which
  // sum_up sets.
  const CpuTime& cpu_self(NodeIndex node) const { return cpu_[nodes_[node].cpu].self; }
  const CpuTime& cpu_total(NodeIndex node) const { return cpu_[nodes_[node].cpu].total; }

  // In the tree of `root`, reduces self_ns, which is wall-clock time so far, to the share
  // that counts on `clock`, and sets cpu_ns. To be called once, before sum_up.
  void choose_clock(NodeIndex root, ReportClock clock);

  // In the tree of `root`, takes overhead_ps off self_ns, and off the time on a CPU if
  // `has_cpu_times`; neither falls below zero. To be called once, after choose_clock.
  void correct(NodeIndex root, ReportClock clock, bool has_cpu_times);

  // Sets total_ns in the tree of `root`, and removes the nodes that have no calls, no
  // time and no marks.
  void sum_up(NodeIndex root);

  // The node after `node` in the preorder of the tree of `root`; kNoNode at its end.
  NodeIndex next_in_preorder(NodeIndex node, NodeIndex root) const;

  // Adds the calls, times and marks of the tree of `from_root`, which is summed up, to
  // the tree of `into`, for which sum_up is to be called again.
  void merge(NodeIndex into, const CallTree& from, NodeIndex from_root);

 private:
  NodeIndex find_or_add(NodeIndex parent, FunctionId function);
  static uint64_t edge(NodeIndex parent, FunctionId function) {
    return uint64_t{parent} << 32 | function;
  }

  struct NodeCpu {
    CpuTime self, total;
  };
  NodeCpu& own_cpu(NodeIndex node);

  std::vector<CallNode> nodes_;
  std::vector<NodeMarks> marks_;
  std::vector<NodeCpu> cpu_;                           // [0]: none
  absl::flat_hash_map<uint64_t, NodeIndex> children_;  // by edge()
};

// One replayed thread: the result of a replay, once it is finished.
struct ThreadTree {
  ThreadIndex thread;
  NodeIndex root;
  // The time of the first record of the thread, its own or the kernel's about it, and its
  // end or the recording's, cut at the filter's time range. On the wall clock the root's
  // total_ns is the difference; of an `Interrupt` thread it is the time of its calls.
  int64_t start_ns, stop_ns;
  uint64_t end_within_ns;  // it may have ended that much before its end
};

}  // namespace arctrace::reader
