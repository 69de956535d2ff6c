// Finds the threads that the kernel's records are about (SPEC.md READ-5).
#pragma once

#include <absl/container/flat_hash_map.h>

#include <cstdint>
#include <functional>
#include <vector>

#include "reader/replay/schedule_listener.hpp"
#include "reader/trace/definitions.hpp"
#include "reader/trace/own_number.hpp"
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

  // As far as records have been applied. To be set, if at all, before the first one.
  const OwnNumbers& own_numbers() const { return own_numbers_; }
  void set_own_numbers(OwnNumbers numbers) { own_numbers_ = std::move(numbers); }

  // The next record of the kernel writer, in order of time. Records of other writers, and
  // INTERRUPT, change nothing.
  void apply(const Record& record);
  // The stack of the thread that runs at a record of the kernel's, or nullptr.
  ThreadStack* running(const Record& record) const;

 private:
  // Whether the thread has ended, or runs another program, which has no records.
  bool is_over(ThreadIndex thread) const;
  // The thread that has the number `tid` in the first PID namespace at that time, or
  // kNoIndex.
  ThreadIndex find(uint32_t tid, int64_t time_ns) const;
  ThreadStack* find_stack(uint32_t tid, int64_t time_ns) const;
  // The same, but of a vfork child's number the stack of its parent, on which it runs.
  ThreadStack* stack_that_runs(uint32_t tid, int64_t time_ns) const;
  void woken(const Record& record, uint32_t tid, const Waker& waker);
  Waker waker_of(const Record& record, uint32_t tid, uint32_t context) const;
  void forked(const Record& record, uint32_t parent_tid, OwnNumber child);
  void executed(const Record& record, uint32_t tid);

  const Definitions& definitions_;
  std::function<ThreadStack*(ThreadIndex)> stack_of_;
  ScheduleListener* schedule_;
  // In order of start.
  absl::flat_hash_map<OwnNumber, std::vector<ThreadIndex>> by_number_;
  OwnNumbers own_numbers_;
  // Threads that have no records of their own, by their number in the first namespace.
  absl::flat_hash_map<uint32_t, ThreadIndex> silent_;
  // The threads that wait for a vfork child, by the child's number.
  absl::flat_hash_map<uint32_t, ThreadIndex> vfork_parents_;
};

}  // namespace arctrace::reader
