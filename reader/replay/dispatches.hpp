// From the kernel's records to the threads that they are about.
#pragma once

#include <absl/container/flat_hash_map.h>

#include <cstdint>
#include <functional>
#include <utility>
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
  // A thread's number, as its process sees it.
  struct Number {
    uint32_t pid_namespace = 0;  // 0: the first
    uint32_t tid = 0;
    bool operator==(const Number&) const = default;
    template <class H>
    friend H AbslHashValue(H hash, const Number& number) {
      return H::combine(std::move(hash), number.pid_namespace, number.tid);
    }
  };

  // The thread that has this number in the first PID namespace at that time, or kNoIndex.
  ThreadIndex find(uint32_t tid, int64_t time_ns) const;
  ThreadStack* find_stack(uint32_t tid, int64_t time_ns) const;
  Waker waker_of(const Record& record, uint32_t tid, uint32_t context) const;

  const Definitions& definitions_;
  std::function<ThreadStack*(ThreadIndex)> stack_of_;
  absl::flat_hash_map<Number, std::vector<ThreadIndex>> by_number_;  // in order of start
  // What threads in other PID namespaces call themselves, by number in the first one.
  absl::flat_hash_map<uint32_t, Number> own_numbers_;
};

}  // namespace arctrace::reader
