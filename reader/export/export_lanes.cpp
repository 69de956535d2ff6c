#include "reader/export/export_lanes.hpp"

#include <absl/strings/str_cat.h>

#include <algorithm>

namespace arctrace::reader {
namespace {

// Of gaps that no CPU has.
constexpr uint32_t kNoCpu = UINT32_MAX;

}  // namespace

std::string lane_name(const LaneKey& lane, const Definitions& definitions,
                      const ExportNames& names) {
  switch (lane.kind) {
    case LaneKind::kOfCalls:
      break;
    case LaneKind::kOfCoroutine:
      return absl::StrCat("coroutine ", lane.number);
    case LaneKind::kOfAdopted:
      return "entered before tracing";
    case LaneKind::kOfStates:
      return "on and off the CPU";
    case LaneKind::kOfGaps:
      return lane.number == kNoCpu ? "gaps" : absl::StrCat("cpu ", lane.number, " gaps");
  }
  return definitions.thread(lane.thread) == nullptr ? "session"
                                                    : names.thread(lane.thread);
}

GapLanes::Stretch GapLanes::add(const Gap& gap) {
  const LaneKey lane{gap.thread, LaneKind::kOfGaps, gap.cpu.value_or(kNoCpu)};
  int64_t& last_stop = last_stop_.try_emplace(lane, INT64_MIN).first->second;
  const int64_t from_ns = std::clamp(gap.from_known ? gap.from_ns : gap.to_ns,
                                     std::min(last_stop, gap.to_ns), gap.to_ns);
  last_stop = std::max(last_stop, gap.to_ns);
  return {lane, from_ns, gap.to_ns};
}

}  // namespace arctrace::reader
