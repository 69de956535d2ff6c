#include "src/recorder/drain/busy_runs.hpp"

#include "src/base/shared_atomics.hpp"
#include "src/protocol/handout.hpp"

namespace arctrace {

BusyRuns::BusyRuns(const BufferView& view) : view_(view) {
  const Geometry& geometry = view.geometry();
  if (geometry.mode == ARCTRACE_MODE_DROP &&
      geometry.block_count > Handout<IpcAtomics>::kLooks) {
    busy_.resize(geometry.block_count);
  }
}

void BusyRuns::publish() const {
  uint32_t run = 0;
  for (auto i = static_cast<uint32_t>(busy_.size()); i > 0; --i) {
    const uint32_t index = i - 1;
    run = busy_[index] ? run + 1 : 0;
    if (index % ARCTRACE_BUSY_RUN_STEP != 0) continue;
    uint32_t& hint = view_.block_header(index).busy_run;
    if (IpcAtomics::load_relaxed(hint) != run) IpcAtomics::store_relaxed(hint, run);
  }
}

}  // namespace arctrace
