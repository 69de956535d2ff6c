#include "src/recorder/drain/recorder_sleep.hpp"

#include <algorithm>
#include <cerrno>
#include <ctime>

#include "src/base/shared_atomics.hpp"
#include "src/buffer/wake_word.hpp"

namespace arctrace {
namespace {

// A process that looks at a word a thousand times a second takes about 1 % of a CPU.
constexpr long kShortestStepNs = 1'000'000;

}  // namespace

void RecorderSleep::wait(arctrace_control& control, long interval_ns, bool busy) {
  if (has_futex_) {
    has_futex_ = wait_for_wake(control, interval_ns) != -EFAULT;
    if (has_futex_) return;
  }
  step_ns_ = busy ? kShortestStepNs : std::max(step_ns_, kShortestStepNs);
  for (long slept_ns = 0; slept_ns < interval_ns; slept_ns += step_ns_) {
    // O2 acquire, matches O1.
    if (IpcAtomics::exchange_acq_rel(control.wake, uint32_t{0}) != 0) {
      step_ns_ = kShortestStepNs;
      return;
    }
    const timespec step{0, std::min(step_ns_, interval_ns - slept_ns)};
    nanosleep(&step, nullptr);
  }
  step_ns_ = std::min(step_ns_ * 2, interval_ns);
}

}  // namespace arctrace
