#include "reader/report/wait_histograms.hpp"

#include <arctrace/format.h>

#include "src/base/untrusted_bytes.hpp"

namespace arctrace::reader {

void WaitHistograms::state_ended(const StateInfo& state) {
  if (state.state != RunState::kReady || state.preempted) return;
  run_queue_.add(static_cast<uint64_t>(state.stop_ns) -
                 static_cast<uint64_t>(state.start_ns));
}

// A request may be done in parts: then the sectors of the rest begin later.
void WaitHistograms::point(const PointInfo& point) {
  if (point.kind != PointInfo::Kind::kRecord) return;
  if (point.record->type == ARCTRACE_TYPE_BLOCK_IO) {
    const auto io = load_part_untrusted<arctrace_block_io_body>(point.record->body);
    if (open_.size() < kRequestsMax) {
      open_[{io.device, io.sector}] = {point.time_ns, io.bytes};
    }
    return;
  }
  if (point.record->type != ARCTRACE_TYPE_BLOCK_IO_END) return;
  const auto io = load_part_untrusted<arctrace_block_io_end_body>(point.record->body);
  const auto found = open_.find({io.device, io.sector});
  if (found == open_.end()) return;
  Request request = found->second;
  open_.erase(found);
  if (io.bytes < request.bytes_left) {
    request.bytes_left -= io.bytes;
    open_[{io.device, io.sector + io.bytes / 512}] = request;
  } else if (point.time_ns >= request.since_ns) {
    requests_[io.operation].add(static_cast<uint64_t>(point.time_ns) -
                                static_cast<uint64_t>(request.since_ns));
  }
}

}  // namespace arctrace::reader
