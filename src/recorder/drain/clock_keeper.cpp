#include "src/recorder/drain/clock_keeper.hpp"

#include <pthread.h>
#include <sched.h>
#include <sys/prctl.h>

#include <algorithm>
#include <chrono>
#include <ctime>

#include "src/base/shared_atomics.hpp"
#include "src/recorder/drain/collector_thread.hpp"

namespace arctrace::recorder {

ClockKeeper::ClockKeeper(const BufferView& view, uint64_t resolution_ns,
                         std::optional<uint32_t> cpu)
    : view_(view), resolution_ns_(resolution_ns) {
  store();
  thread_ = std::thread([this, cpu] { run(cpu); });
}

ClockWordTimes ClockKeeper::finish() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  wakes_.notify_one();
  if (thread_.joinable()) thread_.join();
  ClockWordTimes times{.stores = stores_, .mean_age_ns = 0, .longest_ns = longest_ns_};
  // A record at any moment is as much too early as the last store is ago: half of a time
  // between two stores on average, and longer ones have more records.
  if (sum_ > 0) times.mean_age_ns = static_cast<uint64_t>(squares_ / sum_ / 2);
  return times;
}

void ClockKeeper::store() {
  const uint64_t now_ns = read_clock_ns(CLOCK_MONOTONIC);
  // Relaxed: the word alone is read (SPEC.md CLK-2).
  IpcAtomics::store_relaxed(view_.control().time, read_ticks(view_.geometry().clock));
  if (last_ns_ != 0) {
    const uint64_t passed_ns = now_ns - last_ns_;
    longest_ns_ = std::max(longest_ns_, passed_ns);
    squares_ += static_cast<double>(passed_ns) * static_cast<double>(passed_ns);
    sum_ += static_cast<double>(passed_ns);
  }
  last_ns_ = now_ns;
  ++stores_;
}

void ClockKeeper::run(std::optional<uint32_t> cpu) {
  pthread_setname_np(pthread_self(), "arctrace-clock");
  if (cpu.has_value()) {
    become_collector_thread({.cpu = cpu, .rt_priority = 0});
    spin();
  } else {
    sleep();
  }
}

void ClockKeeper::spin() {
  while (!ends_.load(std::memory_order_relaxed)) {
    const uint64_t until_ns = last_ns_ + resolution_ns_;
    while (read_clock_ns(CLOCK_MONOTONIC) < until_ns) {
    }
    store();
  }
}

void ClockKeeper::sleep() {
  constexpr uint64_t kSleeps = 32;       // between two looks at what they cost
  constexpr uint64_t kTimesItsCost = 9;  // at least so long, a sleep takes a tenth
  constexpr uint64_t kLongest = 1'000'000;
  // The kernel adds the slack to each sleep, 50 us by default.
  prctl(PR_SET_TIMERSLACK, 1UL, 0UL, 0UL, 0UL);
  uint64_t interval_ns = resolution_ns_;
  uint64_t used_ns = read_clock_ns(CLOCK_THREAD_CPUTIME_ID);
  std::unique_lock lock(mutex_);
  while (!wakes_.wait_for(lock, std::chrono::nanoseconds(interval_ns),
                          [this] { return ends_.load(std::memory_order_relaxed); })) {
    store();
    if (stores_ % kSleeps != 0) continue;
    const uint64_t now_used_ns = read_clock_ns(CLOCK_THREAD_CPUTIME_ID);
    const uint64_t cost_ns = (now_used_ns - used_ns) / kSleeps;
    used_ns = now_used_ns;
    interval_ns = std::max(resolution_ns_, std::min(kTimesItsCost * cost_ns, kLongest));
  }
}

}  // namespace arctrace::recorder
