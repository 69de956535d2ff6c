#include "src/recorder/buffer/counter_check.hpp"

#include <sched.h>

#include <algorithm>
#include <vector>

#include "src/buffer/clock.hpp"

namespace arctrace {
namespace {

// More would take long, and a machine with so many CPUs has a kernel that knows.
constexpr size_t kCpusMax = 512;
constexpr double kNsMax = 500;

std::optional<CounterSample> sample_here() {
#if defined(__x86_64__)
  constexpr int kTries = 40;
  CounterSample best{0, UINT64_MAX, 0};
  for (int i = 0; i < kTries; ++i) {
    // Fenced, so that the clock is read between the two.
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

// Whether the counter of the sample between two others is where a straight line between
// these is at its time.
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
    // A sample that was interrupted is too wide.
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

}  // namespace arctrace
