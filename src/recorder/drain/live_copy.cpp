#include "src/recorder/drain/live_copy.hpp"

#include <time.h>

#include <algorithm>

#include "src/base/shared_atomics.hpp"
#include "src/protocol/recycle.hpp"
#include "src/recorder/file/block_scan.hpp"

namespace arctrace {
namespace {

// The offset in an open block below which no record is begun any more. A writer that
// reserved below it has committed its record once it no longer names the block (F1). A
// writer that does not do so in time is stopped or gone, and its record is read as it is.
uint32_t settled_end(const BufferView& view, uint32_t index, Patience& patience) {
  constexpr int kTries = 20;
  constexpr timespec kPause{0, 1'000'000};
  const uint64_t next = IpcAtomics::load_acquire(view.block_header(index).next);
  std::vector<uint32_t*> active;
  Recycle<IpcAtomics>::for_each_active(view,
                                       [&](uint32_t& name) { active.push_back(&name); });
  for (int tries = 0;; ++tries) {
    std::erase_if(active, [&](uint32_t* name) {
      return IpcAtomics::load_acquire(*name) != index + 1;
    });
    if (active.empty() || tries == kTries || patience.left_ms == 0) break;
    --patience.left_ms;
    nanosleep(&kPause, nullptr);
  }
  return static_cast<uint32_t>(std::min<uint64_t>(next, view.geometry().block_size));
}

}  // namespace

std::vector<std::byte> copy_live_block_untrusted(const BufferView& view, uint32_t index,
                                                 Patience& patience) {
  const uint32_t settled = settled_end(view, index, patience);
  return copy_live_block_untrusted(view.block(index), view.geometry().block_size,
                                   settled);
}

}  // namespace arctrace
