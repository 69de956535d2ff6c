// From the kernel's records to the threads that they are about: who left a CPU, and who
// got one.
#pragma once

#include <absl/container/flat_hash_map.h>

#include <cstdint>
#include <functional>
#include <vector>

#include "reader/trace/definitions.hpp"
#include "reader/trace/record.hpp"

namespace arctrace::reader {

class ThreadStack;

class Dispatches {
 public:
  // `stack_of`: a thread's stack, or nullptr if it is not wanted.
  Dispatches(const Definitions& definitions,
             std::function<ThreadStack*(ThreadIndex)> stack_of);

  // A record of the kernel writer's, in order of time; others change nothing.
  void apply(const Record& record);

  // Whether there was one that says who runs.
  bool any() const { return any_; }

 private:
  // The recorded thread that has this number at that time, or nullptr.
  ThreadStack* find(uint32_t tid, int64_t time_ns) const;

  const Definitions& definitions_;
  std::function<ThreadStack*(ThreadIndex)> stack_of_;
  bool any_ = false;
  absl::flat_hash_map<uint32_t, std::vector<ThreadIndex>> by_tid_;  // in order of start
};

}  // namespace arctrace::reader
