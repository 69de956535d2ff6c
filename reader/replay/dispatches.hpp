// From the kernel's records to the threads that they are about.
#pragma once

#include <absl/container/flat_hash_map.h>

#include <cstdint>
#include <functional>
#include <vector>

#include "reader/replay/schedule_listener.hpp"
#include "reader/trace/definitions.hpp"
#include "reader/trace/record.hpp"

namespace arctrace::reader {

class ThreadStack;

class Dispatches {
 public:
  // `stack_of`: a thread's stack, or nullptr if it is not wanted. `all_threads`: those
  // too that have no records of their own.
  Dispatches(const Definitions& definitions, bool all_threads,
             std::function<ThreadStack*(ThreadIndex)> stack_of);

  // A record of the kernel writer's, in order of time; others change nothing.
  void apply(const Record& record);

 private:
  // The thread that has this number at that time, or kNoIndex.
  ThreadIndex find(uint32_t tid, int64_t time_ns) const;
  ThreadStack* find_stack(uint32_t tid, int64_t time_ns) const;
  Waker waker_of(const Record& record, uint32_t tid, uint32_t context) const;

  const Definitions& definitions_;
  std::function<ThreadStack*(ThreadIndex)> stack_of_;
  absl::flat_hash_map<uint32_t, std::vector<ThreadIndex>> by_tid_;  // in order of start
};

}  // namespace arctrace::reader
