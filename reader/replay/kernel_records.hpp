// Finds the threads that the kernel's records are about (SPEC.md READ-5), and the
// interrupts that CPUs served.
#pragma once

#include <absl/container/flat_hash_map.h>
#include <absl/container/flat_hash_set.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "reader/replay/call_tree.hpp"
#include "reader/replay/frame_stack.hpp"
#include "reader/replay/listener.hpp"
#include "reader/trace/block_writers.hpp"
#include "reader/trace/definitions.hpp"
#include "reader/trace/record.hpp"

namespace arctrace::reader {

class ThreadStack;

// Applies each record of the kernel to the stacks of its threads: the running one, and
// for SWITCH and WAKING the next and the woken one.
class Dispatches {
 public:
  // `stack_of` gives a thread's stack, or nullptr if the thread is filtered out.
  // `all_threads`: including threads of other processes than those that are recorded.
  // `definitions` and `schedule`, which may be nullptr, must outlive this object.
  Dispatches(const Definitions& definitions, bool all_threads,
             std::function<ThreadStack*(ThreadIndex)> stack_of,
             ScheduleListener* schedule = nullptr);

  // The numbers up to the last applied record. To be set, if at all, before the first
  // one.
  const OwnNumbers& own_numbers() const { return own_numbers_; }
  void set_own_numbers(OwnNumbers numbers);
  // Whether a record of the kernel's, up to the last applied one, could be about the
  // thread. No record names a thread whose number is not known, nor one of another PID
  // namespace if no NUMBERED gave its number in the first: its process has joined by
  // itself, and the kernel's records are not about it.
  bool can_name(ThreadIndex thread) const;

  // Applies the next record of the kernel writer, in order of time. Records of other
  // writers, and INTERRUPT, change nothing.
  void apply(const Record& record);
  // The stack of the thread that runs at a record of the kernel's, or nullptr.
  ThreadStack* running(const Record& record) const;

 private:
  // Whether the thread has ended, or runs another program, which has no records.
  bool is_over(ThreadIndex thread) const;
  // The thread that has the number `tid` in the first PID namespace at that time, or
  // kNoIndex.
  ThreadIndex find(uint32_t tid, int64_t time_ns) const;
  // Of a number that threads with records have: the thread that had it before them, as a
  // fork child that has written nothing before it executes a program; else kNoIndex.
  ThreadIndex fork_child(uint32_t tid) const;
  ThreadStack* find_stack(uint32_t tid, int64_t time_ns) const;
  // Returns the thread's stack, but for a vfork child that of its parent, on which it
  // runs.
  ThreadStack* stack_that_runs(uint32_t tid, int64_t time_ns) const;
  void woken(const Record& record, uint32_t tid, const Waker& waker);
  Waker waker_of(const Record& record, uint32_t tid, uint32_t context) const;
  void forked(const Record& record, uint32_t parent_tid, OwnNumber child);
  void executed(const Record& record, uint32_t tid);

  const Definitions& definitions_;
  std::function<ThreadStack*(ThreadIndex)> stack_of_;
  ScheduleListener* schedule_;
  // The threads with each number, in the order of their starts.
  absl::flat_hash_map<OwnNumber, std::vector<ThreadIndex>> by_number_;
  // The last thread with each number that another thread of its process has created.
  absl::flat_hash_map<OwnNumber, ThreadIndex> created_;
  OwnNumbers own_numbers_;
  // All that own_numbers_ has named until now.
  absl::flat_hash_set<OwnNumber> named_;
  // Threads that have no records of their own, by their number in the first namespace.
  absl::flat_hash_map<uint32_t, ThreadIndex> silent_;
  // The threads that wait for a vfork child, by the child's number.
  absl::flat_hash_map<uint32_t, ThreadIndex> vfork_parents_;
  // The numbers that their last FORKED gave to vfork children: what these did before they
  // executed a program is their parents', on whose stacks they ran.
  absl::flat_hash_set<uint32_t> vfork_children_;
};

class ThreadStack;

// The interrupts that CPUs served (SPEC.md READ-12): when they begin and end, for the
// threads upon which they came and for each CPU's `Interrupt` thread. A record tells when
// its interrupt will end, so all is told in the order of time if end_until() is called
// before each record.
class Interrupts {
 public:
  // `state` must outlive this object. `wants_thread`: as in ReplayOptions.
  Interrupts(ReplayState& state, const std::function<bool(ThreadIndex)>& wants_thread);

  // Begins an interrupt. `interrupted`: the stack of the thread upon which it came, which
  // must outlive this object; nullptr: that thread is not replayed.
  void begin(const Record& record, ThreadStack* interrupted);

  // Ends the interrupts that last until then, or less.
  void end_until(int64_t time_ns) {
    if (next_end_ns_ <= time_ns) end_due(time_ns);
  }

  // To be called once, last: ends all interrupts, at `time_ns` if they last longer.
  void finish(int64_t time_ns);

  // REQUIRES: finish() was called. The `Interrupt` threads that have a part in the time
  // range, by CPU.
  std::span<const ThreadTree> trees() const { return trees_; }

 private:
  struct Cpu {
    ThreadIndex thread = kNoIndex;       // the `Interrupt` thread
    std::unique_ptr<FrameStack> frames;  // its own; nullptr: it is filtered out
    std::vector<int64_t> ends_ns;        // of those that are served, outermost first
    ThreadStack* interrupted = nullptr;  // by the outermost one
  };

  Cpu& cpu_of(uint32_t cpu);
  void end_due(int64_t time_ns);
  void end_innermost(Cpu& cpu, int64_t latest_ns);
  void find_next_end();

  ReplayState& state_;
  std::map<uint32_t, ThreadIndex> threads_;  // that are wanted, by CPU
  std::map<uint32_t, Cpu> cpus_;
  std::vector<Cpu*> serving_;  // those that serve an interrupt
  int64_t next_end_ns_ = INT64_MAX;
  std::vector<ThreadTree> trees_;
};

}  // namespace arctrace::reader
