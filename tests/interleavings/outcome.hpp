// Results of exploring tasks over a World.
#pragma once

#include <doctest/doctest.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "src/base/shared_atomics.hpp"
#include "tests/interleavings/world.hpp"
#include "tests/support/effort.hpp"

namespace arctrace::testing {

// The limit for one test; the long form of the test explores more.
inline uint64_t executions_max() { return is_long() ? 50'000'000 : 50'000; }

struct Outcome {
  Explored explored;
  uint64_t faults = 0;
  std::string first_fault;
};

// Explores `tasks`; after each execution the collector finishes and the rest is checked.
// `attempts`: records that the tasks try to write; UINT64_MAX: some of them die.
inline Outcome explore_protocol(World& world,
                                const std::function<std::vector<Task>()>& tasks,
                                uint64_t attempts) {
  Outcome outcome;
  outcome.explored = explore(
      [&] {
        world.restore();
        return tasks();
      },
      [&] {
        while (collect<IpcAtomics>(world) != 0) {
        }
        for (uint32_t i = 0; i < world.view().geometry().block_count; ++i) {
          const uint32_t phase = Recycle<IpcAtomics>::state(world.view(), i).phase;
          if (phase == ARCTRACE_PHASE_SHARED) collect_block<IpcAtomics>(world, i);
        }
        const bool is_whole = attempts != UINT64_MAX;
        std::string fault = world.fault(is_whole);
        if (fault.empty() && is_whole &&
            (world.torn != 0 || world.committed.size() + world.lost != attempts)) {
          fault = "written and lost are not what was attempted";
        }
        if (fault.empty()) return;
        if (outcome.faults++ == 0) outcome.first_fault = fault;
      },
      executions_max());
  return outcome;
}

inline void check_clean(const std::string& what, const Outcome& outcome) {
  CAPTURE(what);
  CAPTURE(outcome.first_fault);
  CHECK(outcome.faults == 0);
  MESSAGE(what << ": " << outcome.explored.executions << " interleavings of up to "
               << outcome.explored.longest << " accesses"
               << std::string(outcome.explored.complete ? ", all" : ", not all"));
}

inline void check_caught(const std::string& what, const Outcome& outcome) {
  CAPTURE(what);
  CHECK(outcome.faults > 0);
  MESSAGE("mutant, " << what << ": " << outcome.first_fault << ", in " << outcome.faults
                     << " of " << outcome.explored.executions);
}

}  // namespace arctrace::testing
