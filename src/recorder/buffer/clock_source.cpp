#include "src/recorder/buffer/clock_source.hpp"

#include <time.h>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include <algorithm>
#include <cmath>
#include <fstream>
#include <string>

#include "src/buffer/clock.hpp"
#include "src/recorder/buffer/counter_check.hpp"

namespace arctrace {
namespace {

// Whether the counters of all CPUs run together. The kernel says so by having "tsc" among
// its clock sources. A guest of KVM may not have it there, and have "kvm-clock" instead,
// which the kernel computes from the counter: then they are compared, once for a process.
[[maybe_unused]] bool counters_run_together() {
  std::ifstream file(
      "/sys/devices/system/clocksource/clocksource0/available_clocksource");
  if (!file) return true;  // without sysfs, CPUID alone decides
  bool is_kvm_guest = false;
  for (std::string name; file >> name;) {
    if (name == "tsc") return true;
    is_kvm_guest = is_kvm_guest || name == "kvm-clock";
  }
  static const bool agree = is_kvm_guest && counters_agree();
  return agree;
}

uint64_t realtime_ns() {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1000000000u +
         static_cast<uint64_t>(now.tv_nsec);
}

}  // namespace

arctrace_clock choose_clock() {
#if defined(__x86_64__)
  unsigned a = 0;
  unsigned b = 0;
  unsigned c = 0;
  unsigned d = 0;
  constexpr unsigned kInvariantTsc = 1u << 8;
  if (__get_cpuid(0x80000007u, &a, &b, &c, &d) != 0 && (d & kInvariantTsc) != 0 &&
      counters_run_together()) {
    return ARCTRACE_CLOCK_TSC;
  }
  return ARCTRACE_CLOCK_MONOTONIC;
#elif defined(__aarch64__)
  return ARCTRACE_CLOCK_CNTVCT;
#else
  return ARCTRACE_CLOCK_MONOTONIC;
#endif
}

ClockSync take_clock_sync(uint32_t clock) {
  constexpr int kTries = 20;
  ClockSync best{};
  uint64_t best_width = UINT64_MAX;
  uint64_t real_width = UINT64_MAX;
  uint64_t realtime_of_boot_ns = 0;
  for (int i = 0; i < kTries; ++i) {
    const uint64_t before = read_ticks(clock);
    const uint64_t monotonic = read_monotonic_ns();
    const uint64_t after = read_ticks(clock);
    if (after - before < best_width) {
      best_width = after - before;
      best.ticks =
          clock == ARCTRACE_CLOCK_MONOTONIC ? monotonic : before + (after - before) / 2;
      best.monotonic_ns = monotonic;
    }
    const uint64_t realtime = realtime_ns();
    const uint64_t width = read_monotonic_ns() - monotonic;
    if (width < real_width) {
      real_width = width;
      realtime_of_boot_ns = realtime - monotonic - width / 2;
    }
  }
  best.realtime_ns = realtime_of_boot_ns + best.monotonic_ns;
  return best;
}

bool is_of_this_boot(const ClockSync& then, uint32_t clock, uint64_t ticks_per_second) {
  constexpr double kSteppedNsMax = 2e9;  // clocks of the wall are set now and then
  constexpr double kDriftMax = 1e-3;     // of an estimated rate
  constexpr double kErrorNsMax = 1e6;
  if (!has_clock(clock)) return false;
  const ClockSync now = take_clock_sync(clock);
  if (then.monotonic_ns > now.monotonic_ns || then.ticks > now.ticks) return false;
  const auto difference = [](uint64_t after, uint64_t before) {
    return static_cast<double>(after) - static_cast<double>(before);
  };
  const double passed_ns = difference(now.monotonic_ns, then.monotonic_ns);
  const double real_ns = difference(now.realtime_ns, then.realtime_ns);
  const double ticks_ns = static_cast<double>(now.ticks - then.ticks) * 1e9 /
                          static_cast<double>(std::max<uint64_t>(ticks_per_second, 1));
  return std::abs(real_ns - passed_ns) < kSteppedNsMax &&
         std::abs(ticks_ns - passed_ns) < kErrorNsMax + passed_ns * kDriftMax;
}

uint64_t measure_ticks_per_second(uint32_t clock) {
  if (clock == ARCTRACE_CLOCK_MONOTONIC) return 1000000000u;
  constexpr uint64_t kIntervalNs = 5000000;
  const ClockSync first = take_clock_sync(clock);
  timespec pause{0, kIntervalNs};
  nanosleep(&pause, nullptr);
  const ClockSync second = take_clock_sync(clock);
  const auto ticks = static_cast<double>(second.ticks - first.ticks);
  const auto ns = static_cast<double>(second.monotonic_ns - first.monotonic_ns);
  return static_cast<uint64_t>(ticks * 1e9 / ns);
}

}  // namespace arctrace
