// The lanes of a time line: which calls, states and gaps stand in a lane of their own,
// and what each lane is called. The formats that have lanes share this.
#pragma once

#include <absl/container/flat_hash_map.h>

#include <cstdint>
#include <string>
#include <utility>

#include "reader/export/export_names.hpp"
#include "reader/trace/definitions.hpp"
#include "reader/trace/gaps.hpp"

namespace arctrace::reader {

enum class LaneKind : uint8_t { kOfCalls, kOfCoroutine, kOfAdopted, kOfStates, kOfGaps };

struct LaneKey {
  ThreadIndex thread;
  LaneKind kind;
  uint32_t number;  // of the coroutine, the adopted call, or the CPU; else 0
  bool operator==(const LaneKey&) const = default;
  template <class H>
  friend H AbslHashValue(H hash, const LaneKey& lane) {
    return H::combine(std::move(hash), lane.thread, lane.kind, lane.number);
  }
};

// The lane of the calls on the stack of a coroutine; 0: on the thread's own.
inline LaneKey lane_of_calls(ThreadIndex thread, uint32_t coroutine) {
  return {thread, coroutine == 0 ? LaneKind::kOfCalls : LaneKind::kOfCoroutine,
          coroutine};
}

// What the lane is called below its thread: "coroutine 3", "entered before tracing", "on
// and off the CPU", "gaps", "cpu 3 gaps". A lane of calls has the thread's name, or that
// of the session.
std::string lane_name(const LaneKey& lane, const Definitions& definitions,
                      const ExportNames& names);

// What happens at one moment and has no name of its own.
inline constexpr const char* kOrphanExitName = "orphan exit";
inline constexpr const char* kContradictionName = "contradiction";

// Gives each gap a stretch of its lane. Two gaps of one lane may overlap, which no
// nesting can show: the later one begins where the earlier one ends.
class GapLanes {
 public:
  struct Stretch {
    LaneKey lane;
    int64_t from_ns, to_ns;
  };

  // A gap whose begin is not known is a moment.
  Stretch add(const Gap& gap);

 private:
  absl::flat_hash_map<LaneKey, int64_t> last_stop_;
};

}  // namespace arctrace::reader
