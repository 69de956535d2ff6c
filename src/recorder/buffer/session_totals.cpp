#include "src/recorder/buffer/session_totals.hpp"

#include "src/base/shared_atomics.hpp"
#include "src/protocol/recycle.hpp"

namespace arctrace {

uint64_t session_written(const BufferView& view) {
  uint64_t written = 0;
  const uint32_t used = Recycle<IpcAtomics>::slots_used(view);
  for (uint32_t i = 0; i < used; ++i) {
    written += IpcAtomics::load_relaxed(view.slot(i).written) +
               IpcAtomics::load_relaxed(view.slot(i).written_shared);
  }
  return written;
}

std::vector<uint64_t> session_losses(const BufferView& view) {
  std::vector<uint64_t> sum(ARCTRACE_LOST_CAUSES);
  const uint32_t used = Recycle<IpcAtomics>::slots_used(view);
  for (uint32_t cause = 0; cause < ARCTRACE_LOST_CAUSES; ++cause) {
    sum[cause] = IpcAtomics::load_relaxed(view.control().lost[cause]);
    for (uint32_t i = 0; i < used; ++i) {
      sum[cause] += IpcAtomics::load_relaxed(view.slot(i).lost[cause]);
    }
  }
  sum[ARCTRACE_LOST_KERNEL] += cpu_losses(view);
  return sum;
}

uint64_t session_filtered_out(const BufferView& view) {
  uint64_t sum = IpcAtomics::load_relaxed(view.control().filtered_out);
  const uint32_t used = Recycle<IpcAtomics>::slots_used(view);
  for (uint32_t i = 0; i < used; ++i) {
    sum += IpcAtomics::load_relaxed(view.slot(i).filtered_out);
  }
  return sum;
}

uint64_t session_start_ticks(const BufferView& view) {
  auto& header = *reinterpret_cast<arctrace_session_header*>(view.base());
  return IpcAtomics::load_relaxed(header.start_ticks);
}

uint64_t cpu_losses(const BufferView& view) {
  uint64_t sum = 0;
  for (uint32_t cpu = 0; cpu < view.geometry().cpu_count; ++cpu) {
    sum += IpcAtomics::load_relaxed(view.cpu_slot(cpu).lost);
  }
  return sum;
}

}  // namespace arctrace
