// Threads that wait again and again in one place until somebody gives them work: they
// serve connections, or take jobs from a queue. They are found by the pattern of their
// waits.
#pragma once

#include <absl/container/flat_hash_map.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "reader/analysis/function_times.hpp"
#include "reader/analysis/tree_groups.hpp"
#include "reader/replay/listener.hpp"
#include "reader/replay/replay.hpp"
#include "reader/trace/session.hpp"

namespace arctrace::reader {

struct WorkLoop {
  ThreadIndex thread = kNoIndex;
  NodeIndex node = kNoNode;  // the call that waits, in the replay's tree
  uint64_t calls = 0, waits = 0, no_work_ns = 0;
  // The work comes from something that is not in the trace, or that itself waits for it
  // in such a loop. If false, other threads of the process bring it.
  bool is_from_outside = false;
  int64_t first_ns = 0, last_ns = 0;        // from the first work to the last
  const DurationHistogram* work = nullptr;  // from the end of a wait to the next one

  // The function that waits, not that of the kernel in it.
  FunctionId function(const Replay& replay) const;
};

// The work loops of a trace.
struct Serving {
  std::vector<WorkLoop> loops;  // the one with the most waits first
  // The program as a whole serves others: most of its CPU time was in loops that get
  // their work from outside. Then its end says nothing of its work.
  bool is_server = false;
  // Threads of a server that hardly woke.
  std::vector<ThreadIndex> sleepers;
};

// What threads did with their time. For a server, the time in which loops had no work is
// left out, and so are the sleepers.
class BusyGroup {
 public:
  // `all`: the group of all threads; it must outlive this object, as its tree must.
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
  // REQUIRES: the replay is finished.
  Serving find() const;

  uint64_t frame_opened(const FrameInfo& frame) override;
  void frame_closed(const FrameInfo& /*frame*/, uint64_t /*token*/,
                    bool /*shown*/) override {}
  void frame_adopted(const FrameInfo& /*frame*/) override {}
  void point(const PointInfo& /*point*/) override {}
  void state_ended(const StateInfo& state) override;
  void thread_made(const ThreadMade& made) override;

 private:
  // What happens more rarely than this does not happen "again and again".
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
  // In how many stretches between two works from outside a function was called, and in
  // how many stretches between two calls of the first place.
  struct Called {
    uint64_t stretches = 0, last = UINT64_MAX;
    uint64_t rounds = 0, last_round = 0;
    FunctionId after = kRootFunction;  // its last call for I/O before this one's first
    size_t order = 0;       // of the first calls of the thread's functions; 0: none yet
    bool is_first = false;  // also in the stretch before the first work
    bool is_io = false;
  };
  struct Waits {
    absl::flat_hash_map<NodeIndex, Place> places;
    uint64_t works = 0;  // from outside, in all places
    // CPU time after its process had ended, in which the kernel takes it down.
    uint64_t taken_down_ns = 0;
    // The place where it first waited for the network, and how often it has called that
    // since.
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
  // Whether the program is a server (serving.cpp).
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
