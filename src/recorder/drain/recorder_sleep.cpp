#include "src/recorder/drain/recorder_sleep.hpp"

#include <algorithm>
#include <cerrno>
#include <ctime>

#include "src/base/shared_atomics.hpp"
#include "src/buffer/wake_word.hpp"
#include "src/protocol/block_counts.hpp"

namespace arctrace {
namespace {

// A process that looks at a word a thousand times a second takes about 1 % of a CPU.
constexpr long kShortestStepNs = 1'000'000;

}  // namespace

// Blocks that can't be drained do not end every wait: only more of them do.
bool RecorderSleep::is_past_mark(arctrace_control& control) {
  const uint64_t mark = IpcAtomics::load_relaxed(control.high_water_blocks);
  const uint64_t taken = IpcAtomics::load_relaxed(control.taken);
  if (mark == 0 || blocks_in_use<IpcAtomics>(control) < mark || taken == taken_seen_) {
    return false;
  }
  taken_seen_ = taken;
  return true;
}

void RecorderSleep::wait(arctrace_control& control, long interval_ns, bool busy) {
  if (has_futex_) {
    has_futex_ = wait_for_wake(control, interval_ns) != -EFAULT;
    if (has_futex_) return;
  }
  step_ns_ = busy ? kShortestStepNs : std::max(step_ns_, kShortestStepNs);
  for (long slept_ns = 0; slept_ns < interval_ns; slept_ns += step_ns_) {
    // O2 acquire, matches O1.
    if (IpcAtomics::exchange_acq_rel(control.wake, uint32_t{0}) != 0 ||
        is_past_mark(control)) {
      step_ns_ = kShortestStepNs;
      return;
    }
    const timespec step{0, std::min(step_ns_, interval_ns - slept_ns)};
    nanosleep(&step, nullptr);
  }
  step_ns_ = std::min(step_ns_ * 2, interval_ns);
}

}  // namespace arctrace
