// Locks: who waited for which, and who had it meanwhile, by the arguments of lock calls.
#pragma once

#include <absl/container/btree_map.h>
#include <absl/container/flat_hash_map.h>

#include <algorithm>
#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "reader/analysis/function_kinds.hpp"
#include "reader/replay/listener.hpp"
#include "reader/replay/replay.hpp"
#include "reader/trace/definitions.hpp"

namespace arctrace::reader {

// A lock is an address in a process.
struct LockId {
  ProcessIndex process = kNoIndex;
  uint64_t address = 0;

  friend bool operator<(const LockId& a, const LockId& b) {
    return std::pair(a.process, a.address) < std::pair(b.process, b.address);
  }
};

// A stretch of time in which a thread had a lock, or waited for it.
struct LockSpan {
  uint64_t duration_ns = 0;
  int64_t start_ns = 0;
  ThreadIndex thread = kNoIndex;
  std::vector<FunctionId> path;  // the frames around the call that took it
  // The span still went on when the thread, the trace or the time range ended. Its
  // duration ends there.
  bool is_open = false;
};

// A thread's part of the time that was waited for a lock, and the frames around the call
// that took it, or waits for it.
struct LockShare {
  ThreadIndex thread = kNoIndex;
  std::vector<FunctionId> path;
  uint64_t waited_ns = 0;
};

// All times are of the wall clock.
struct LockSums {
  LockKind kind = LockKind::kMutex;
  // Calls that took the lock; for conditions and semaphores, calls that waited and
  // returned.
  uint64_t acquired = 0;
  // The calls during which another thread had the lock, and their time, whether they got
  // it or gave up. Open calls, which had not returned in the end, always count, and so do
  // all calls of conditions and semaphores.
  uint64_t waits = 0, open_waits = 0, waited_ns = 0;
  LockSpan longest_wait;
  // The last hold during the longest wait: its thread, and where that had taken the lock.
  // If the hold went on after the wait, its duration ends with the wait.
  LockSpan holder;
  // The time of all waits, divided by who had the lock meanwhile, and where it had taken
  // it; 0: nobody waited then. Of several readers at once, the one that had it longest
  // counts.
  std::vector<LockShare> waited_for;
  // The rest of waited_ns, in which nobody was seen to have the lock; for conditions and
  // semaphores, which nobody has, all of it.
  uint64_t waited_for_nobody_ns = 0;
  // Open holds are those that were not released in the end.
  uint64_t holds = 0, open_holds = 0, held_ns = 0;
  LockSpan longest_hold;
  // The threads that waited for the longest hold's end, each with how much of the hold it
  // waited for, in the order in which their waits began.
  std::vector<LockShare> longest_hold_waiters;
  uint64_t wakes = 0;  // calls that ended waits of others
  // The frames around the first call that named the lock.
  std::vector<FunctionId> first_path;
};

// A thread that waited for a lock when the trace ended, and the thread that had it.
struct LockWaiter {
  ThreadIndex thread = kNoIndex;
  LockId lock;
  ThreadIndex holder = kNoIndex;
};

// A listener that tracks the locks. A hold lasts from the end of the call that took the
// lock to the beginning of the call that releases it; waiting for a condition releases
// its mutex, and takes it again. Memory is bounded by the number of locks, of threads,
// and of the paths on which they take locks, and while a thread waits, by the holds that
// end meanwhile. The end of a wait takes time in proportion to these holds, and to the
// logarithm of their number.
class LockTable : public ReplayListener {
 public:
  // `definitions` must outlive this object.
  explicit LockTable(const Definitions& definitions) : definitions_(definitions) {}
  // To be called before the first frame; `functions` must outlive this object.
  void set_functions(const Functions& functions) { functions_ = &functions; }

  // To be called after the replay's finish(), with its threads(): counts what is open up
  // to the end of its thread. Only the first call does anything.
  void finish(std::span<const ThreadTree> threads);

  // REQUIRES: finish() was called. The functions below require it, too.
  const absl::btree_map<LockId, LockSums>& locks() const { return locks_; }
  // Calls of lock functions whose lock was not recorded.
  uint64_t calls_without_lock() const { return without_lock_; }
  // Holds of which the end was not seen, though others had the lock later. They are not
  // among the holds of their lock.
  uint64_t holds_without_end() const { return without_end_; }
  // Threads that wait for one another in a ring, each ring once.
  std::vector<std::vector<LockWaiter>> deadlocks() const;

  uint64_t frame_opened(const FrameInfo& frame) override;
  void frame_closed(const FrameInfo& frame, uint64_t token, bool shown) override;
  void frame_adopted(const FrameInfo& /*frame*/) override {}
  void point(const PointInfo& /*point*/) override {}
  void args(const ArgsInfo& args) override;

 private:
  // A lock call that has not ended.
  struct Call {
    LockUse use{};
    std::optional<LockId> lock, mutex;
    bool failed = false;
    int64_t start_ns = 0;
    std::vector<FunctionId> path;
  };
  // How often a thread has a lock, since when, and by which call.
  struct Hold {
    uint32_t depth = 0;
    bool shared = false;
    LockSpan span;
    int64_t last_release_ns = INT64_MIN;  // the last release that did not end the hold
    bool is_doubtful = false;  // what others did shows that it may have ended unseen
  };
  // A thread in a call that waits until it has a lock.
  struct Waiting {
    uint64_t token = 0;  // the call's
    ThreadIndex thread = kNoIndex;
    int64_t start_ns = 0;
    bool shared = false;
    std::vector<FunctionId> path;
    uint64_t first_hold = 0;  // the number of the first hold that can end meanwhile
    // When the wait ended, once that is known; an open call had not returned then.
    int64_t stop_ns = INT64_MAX;
    bool is_open = false;

    // Whether it can't have the lock while `holder` has it: readers do not wait for one
    // another, and no thread for itself, unless it never gets the lock.
    bool waits_for(ThreadIndex holder, bool holds_shared) const {
      return (holder != thread || is_open) && !(shared && holds_shared);
    }
  };
  // A hold that ended while others waited, or an open hold up to a waiter's end.
  struct EndedHold {
    int64_t start_ns, stop_ns;
    ThreadIndex thread;
    uint32_t holder;  // index in LockSums::waited_for
    bool shared;

    // How much of the hold the call waited for.
    uint64_t waited_by(const Waiting& call) const {
      const int64_t since_ns = std::max(call.start_ns, start_ns);
      const int64_t until_ns = std::min(call.stop_ns, stop_ns);
      if (!call.waits_for(thread, shared) || since_ns >= until_ns) return 0;
      return static_cast<uint64_t>(until_ns) - static_cast<uint64_t>(since_ns);
    }
  };
  using Holds = absl::btree_map<ThreadIndex, Hold>;
  // The state of a lock that decides whether a call had to wait.
  struct Owners {
    Holds holds;
    // The last ends of an exclusive hold and of a shared one.
    struct Ended {
      int64_t time_ns = INT64_MIN;
      LockSpan span;
    } exclusive, shared;
    std::vector<Waiting> waiting;  // in the order of their beginnings
    std::deque<EndedHold> ended_holds;
    uint64_t first_hold = 0;  // the number of the first of ended_holds
    absl::btree_map<std::pair<ThreadIndex, std::vector<FunctionId>>, uint32_t> holders;
  };

  // The thread that had the lock last while a call waited; span: null if none had.
  struct LastHolder {
    const LockSpan* span = nullptr;
    bool has_it_still = false;
  };

  const LockUse* use_of(FunctionId function);
  Owners& owners_of(const LockId& lock) { return owners_[{lock.process, lock.address}]; }
  void wait_for(const LockId& lock, ThreadIndex thread, uint64_t token, const Call& call);
  void stay_open(const FrameInfo& frame, uint64_t token, const Call& call);
  void end_wait(const LockId& lock, uint64_t token, int64_t stop_ns);
  static LastHolder last_holder(const Owners& owners, const Waiting& call);
  static bool note_wait(LockSums& sums, const LockSpan& wait);
  static void note_wait_for_nobody(LockSums& sums, const LockSpan& wait);
  static void count_wait(Owners& owners, LockSums& sums, const Waiting& call,
                         const LastHolder& holder);
  static void forget_holds(Owners& owners);
  static std::vector<LockShare> waiters_for(const Owners& owners, const EndedHold& hold);
  static uint32_t holder_of(Owners& owners, LockSums& sums, const LockSpan& span);
  void begin_hold(const LockId& lock, const FrameInfo& frame, const Call& call);
  void release(const LockId& lock, ThreadIndex thread, int64_t time_ns);
  void end_hold(const LockId& lock, Owners& owners, Holds::iterator found,
                int64_t time_ns);
  static void count_hold(Owners& owners, LockSums& sums, const Hold& hold,
                         int64_t stop_ns);
  void end_doubtful_holds(const LockId& lock, ThreadIndex taker, bool shared);
  void close_open_holds(const LockId& lock, Owners& owners,
                        const absl::flat_hash_map<ThreadIndex, int64_t>& ends);

  const Definitions& definitions_;
  const Functions* functions_ = nullptr;
  std::vector<std::pair<bool, std::optional<LockUse>>> known_;  // by FunctionId
  // By thread and coroutine.
  absl::flat_hash_map<std::pair<ThreadIndex, uint32_t>, std::vector<FunctionId>> stacks_;
  absl::flat_hash_map<uint64_t, Call> calls_;  // by token
  absl::btree_map<LockId, LockSums> locks_;
  absl::flat_hash_map<std::pair<ProcessIndex, uint64_t>, Owners> owners_;
  absl::btree_map<ThreadIndex, LockWaiter> waiters_;  // at the end
  uint64_t next_token_ = 1;  // 0: of calls that are not of lock functions
  uint64_t without_lock_ = 0, without_end_ = 0;
  bool is_finished_ = false;
};

}  // namespace arctrace::reader
