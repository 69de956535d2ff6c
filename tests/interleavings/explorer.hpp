// Runs tasks through their interleavings. Each task runs on a stack of its own and stops
// before every access to shared memory; the explorer chooses the task that continues.
// Interleavings that differ only in the order of accesses to different memory are
// equivalent: dynamic partial-order reduction with source sets and sleep sets (Abdulla et
// al., POPL 2014) runs one of each such class. Execution is sequentially consistent;
// ThreadSanitizer tests the orders of memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

namespace arctrace::testing {

// Bytes [begin, begin + size) that a task is about to read or write.
struct Access {
  uintptr_t begin = 0;
  size_t size = 0;
  bool writes = false;

  bool conflicts_with(const Access& other) const {
    return (writes || other.writes) && begin < other.begin + other.size &&
           other.begin < begin + size;
  }
};

using Task = std::function<void()>;

struct Explored {
  uint64_t executions = 0;  // run to their ends and checked
  uint64_t pruned = 0;      // found to be the same as earlier ones on the way
  uint64_t longest = 0;     // accesses in one execution
  bool complete = false;    // false: `executions_max` was reached
};

// Calls `start` for the tasks of each execution, runs them in another interleaving each
// time, and calls `check` after them. REQUIRES: start() restores the same state at the
// same addresses, and the tasks do the same given the same values read. At most 16 tasks.
Explored explore(const std::function<std::vector<Task>()>& start,
                 const std::function<void()>& check, uint64_t executions_max);

// Called by a task before an access. Outside tasks it does nothing.
void before_access(const Access& access);

}  // namespace arctrace::testing
