// Threads that wait again and again in one place until somebody gives them work: what
// serves connections, or takes jobs from a queue. Found by the pattern of their waits.
#pragma once

#include <absl/container/flat_hash_map.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "reader/analysis/duration_histogram.hpp"
#include "reader/analysis/tree_groups.hpp"
#include "reader/replay/listener.hpp"
#include "reader/replay/replay.hpp"
#include "reader/replay/schedule_listener.hpp"
#include "reader/trace/session.hpp"

namespace arctrace::reader {

struct WorkLoop {
  ThreadIndex thread = kNoIndex;
  NodeIndex node = kNoNode;  // the call that waits, in the replay's tree
  uint64_t calls = 0, waits = 0, no_work_ns = 0;
  // What brings the work is not in the trace, or waits for it in such a loop itself. Else
  // other threads of the process bring it.
  bool is_from_outside = false;
  int64_t first_ns = 0, last_ns = 0;        // from the first work to the last
  const DurationHistogram* work = nullptr;  // from the end of a wait to the next one

  // The function that waits, not that of the kernel in it.
  FunctionId function(const Replay& replay) const;
};

// What a trace has of them.
struct Serving {
  std::vector<WorkLoop> loops;  // the one with the most waits first
  // The program as a whole serves others: most of what it did on a CPU was in loops that
  // get their work from outside. When it ends then says nothing of its work.
  bool is_server = false;
  // Of a server: threads that hardly woke.
  std::vector<ThreadIndex> sleepers;
};

// What threads did with their time: of a server without the time in which loops had no
// work, and without the sleepers; of any other program all that there is.
class BusyGroup {
 public:
  // `all`: of all threads; it must outlive this object, as its tree must.
  BusyGroup(const Replay& replay, const Serving& serving, const TreeGroup& all);
  BusyGroup(const BusyGroup&) = delete;
  BusyGroup& operator=(const BusyGroup&) = delete;

  const TreeGroup& group() const { return group_; }

 private:
  CallTree tree_;  // empty if nothing is left out
  TreeGroup group_;
};

// A listener of both kinds. Memory is bounded by the number of paths in which threads
// wait, and of functions. It needs the wake-ups of the kernel's records.
class WorkLoops : public ReplayListener, public ScheduleListener {
 public:
  // To be called before the first record; both must outlive this object, `session` may be
  // null.
  void begin(const Replay& replay, const Session* session);
  // After the replay's finish().
  Serving find() const;

  uint64_t frame_opened(const FrameInfo& frame) override;
  void frame_closed(const FrameInfo& /*frame*/, uint64_t /*token*/,
                    bool /*shown*/) override {}
  void frame_adopted(const FrameInfo& /*frame*/) override {}
  void point(const PointInfo& /*point*/) override {}
  void state_ended(const StateInfo& state) override;
  void thread_made(const ThreadMade& made) override;

 private:
  // "Again and again". What happens more rarely is no pattern.
  static constexpr uint64_t kWaitsMin = 20, kRoundsMin = 20;

  struct Given {
    uint64_t waits = 0, time_ns = 0;
  };
  struct Made {
    ThreadIndex parent;
    int64_t time_ns;
  };
  // One path in which a thread was blocked.
  struct Place {
    uint64_t waits = 0, wait_ns = 0;
    uint64_t timers = 0, from_outside = 0, from_network = 0;
    uint64_t calls_before = 0;  // until it was blocked in it for the first time
    absl::flat_hash_map<ThreadIndex, Given> by_thread;  // those of the trace
    bool has_work = false;  // the last wait was ended by somebody
    int64_t first_ns = INT64_MAX, last_ns = 0;
    std::unique_ptr<DurationHistogram> work;
  };
  // In how many stretches between two works from outside a function was called; and in
  // how many rounds.
  struct Called {
    uint64_t stretches = 0, last = UINT64_MAX;
    uint64_t rounds = 0, last_round = 0;
    FunctionId after = kRootFunction;  // of the calls for I/O, the last before its first
    size_t order = 0;       // of the first calls of the thread's functions; 0: none yet
    bool is_first = false;  // also in that before the first
    bool is_io = false;
  };
  struct Waits {
    absl::flat_hash_map<NodeIndex, Place> places;
    uint64_t works = 0;  // from outside, anywhere
    // On a CPU after its process had ended: what the kernel does to take it down.
    uint64_t taken_down_ns = 0;
    // Where it first waited for the network, and how often it has called that since.
    NodeIndex first_place = kNoNode;
    uint64_t rounds = 0;
    FunctionId last_io = kRootFunction;
    size_t functions = 0;        // that were called
    std::vector<Called> called;  // by FunctionId
  };
  struct Candidate;

  bool is_from_outside(const StateInfo& state) const;
  bool asked_first(const Waits& thread, FunctionId waits_in) const;
  bool can_be_loop(const Waits& thread, NodeIndex node, const Place& place) const;
  bool is_busy_loop(const Waits& thread, NodeIndex node, const Place& place) const;
  std::vector<Candidate> candidates() const;
  bool gets_work_from(const Candidate& loop, const std::vector<Candidate>& all,
                      bool from_outside) const;
  bool waits_for(ThreadIndex thread, const Candidate& loop,
                 const std::vector<Candidate>& all) const;
  // Whether that is a server (serving.cpp).
  absl::flat_hash_map<ThreadIndex, int64_t> serving_threads(
      const std::vector<WorkLoop>& loops) const;
  bool is_server(const std::vector<WorkLoop>& loops) const;
  std::vector<ThreadIndex> sleepers(const std::vector<WorkLoop>& loops) const;

  const Replay* replay_ = nullptr;
  std::vector<bool> inside_;    // by ThreadIndex: of programs that are recorded
  std::vector<Waits> threads_;  // by ThreadIndex
  absl::flat_hash_map<ThreadIndex, Made> made_;
};

}  // namespace arctrace::reader
