// Checks whether the CPUs' counters agree, measures their rate, and takes clock syncs.
#include "src/recorder/buffer/clock_source.hpp"

#include <sched.h>
#include <time.h>

#include <algorithm>
#include <vector>

#include "src/buffer/clock.hpp"

namespace arctrace::recorder {

namespace {

// More CPUs would take long, and a machine with so many has a kernel that knows.
constexpr size_t kCpusMax = 512;
constexpr double kNsMax = 500;

std::optional<CounterSample> sample_here() {
#if defined(__x86_64__)
  constexpr int kTries = 40;
  CounterSample best{0, UINT64_MAX, 0};
  for (int i = 0; i < kTries; ++i) {
    // The reads are fenced, so that the clock is read between the two.
    __builtin_ia32_lfence();
    const uint64_t before = read_counter();
    __builtin_ia32_lfence();
    const uint64_t monotonic_ns = read_monotonic_ns();
    __builtin_ia32_lfence();
    const uint64_t width = read_counter() - before;
    if (width < best.width) best = {before + width / 2, width, monotonic_ns};
  }
  return best;
#else
  return std::nullopt;
#endif
}

std::optional<CounterSample> sample_on(size_t cpu) {
  cpu_set_t only;
  CPU_ZERO(&only);
  CPU_SET(cpu, &only);
  if (sched_setaffinity(0, sizeof only, &only) != 0) return std::nullopt;
  return sample_here();
}

double distance(uint64_t later, uint64_t earlier) {
  return static_cast<double>(static_cast<int64_t>(later - earlier));
}

// Whether the counter of the sample between two others lies on a straight line between
// these.
bool is_between(const CounterSample& first, const CounterSample& other,
                const CounterSample& last) {
  const double ns = distance(last.monotonic_ns, first.monotonic_ns);
  const double ticks = distance(last.ticks, first.ticks);
  if (ns <= 0 || ticks <= 0) return false;
  const double expected = distance(other.monotonic_ns, first.monotonic_ns) * ticks / ns;
  const double error = distance(other.ticks, first.ticks) - expected;
  const double width =
      static_cast<double>(std::max({first.width, other.width, last.width}));
  return width <= kNsMax * ticks / ns && error <= width && error >= -width;
}

}  // namespace

bool counters_agree(std::span<const size_t> cpus, const SampleCounter& sample) {
  constexpr int kTries = 5;
  for (const size_t cpu : cpus.subspan(std::min<size_t>(cpus.size(), 1))) {
    bool agrees = false;
    // A sample is too wide if it was interrupted, so another one is taken.
    for (int i = 0; i < kTries && !agrees; ++i) {
      const std::optional<CounterSample> first = sample(cpus.front());
      const std::optional<CounterSample> other = sample(cpu);
      const std::optional<CounterSample> last = sample(cpus.front());
      agrees = first.has_value() && other.has_value() && last.has_value() &&
               is_between(*first, *other, *last);
    }
    if (!agrees) return false;
  }
  return true;
}

bool counters_agree() {
  cpu_set_t allowed;
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) return false;
  std::vector<size_t> cpus;
  for (size_t cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(cpu, &allowed)) cpus.push_back(cpu);
  }
  if (cpus.size() > kCpusMax) return false;
  const bool agree = counters_agree(cpus, sample_on);
  sched_setaffinity(0, sizeof allowed, &allowed);
  return agree;
}

}  // namespace arctrace::recorder

#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include <algorithm>
#include <cmath>
#include <fstream>
#include <string>

namespace arctrace::recorder {
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

}  // namespace arctrace::recorder
