#include "reader/trace/kernel_gaps.hpp"

#include <algorithm>

namespace arctrace::reader {

void KernelGaps::add(int64_t from_ns, int64_t to_ns, uint32_t cpu) {
  if (from_ns >= to_ns) return;
  any_.push_back({from_ns, to_ns});
  (cpu == kCpuNotKnown ? all_ : by_cpu_[cpu]).push_back({from_ns, to_ns});
}

void KernelGaps::finish() {
  for (auto& [cpu, stretches] : by_cpu_) {
    stretches.insert(stretches.end(), all_.begin(), all_.end());
    join(stretches);
  }
  join(all_);
  join(any_);
}

void KernelGaps::join(Stretches& stretches) {
  std::sort(stretches.begin(), stretches.end(),
            [](const Stretch& a, const Stretch& b) { return a.from_ns < b.from_ns; });
  size_t kept = 0;
  for (size_t i = 1; i < stretches.size(); ++i) {
    Stretch& last = stretches[kept];
    if (stretches[i].from_ns <= last.to_ns) {
      last.to_ns = std::max(last.to_ns, stretches[i].to_ns);
    } else {
      stretches[++kept] = stretches[i];
    }
  }
  if (!stretches.empty()) stretches.resize(kept + 1);
}

int64_t KernelGaps::next_ns(int64_t time_ns, uint32_t cpu) const {
  const Stretches* stretches = &any_;
  if (cpu != kCpuNotKnown) {
    const auto own = by_cpu_.find(cpu);
    stretches = own == by_cpu_.end() ? &all_ : &own->second;
  }
  const auto next = std::upper_bound(
      stretches->begin(), stretches->end(), time_ns,
      [](int64_t time, const Stretch& stretch) { return time < stretch.to_ns; });
  return next == stretches->end() ? INT64_MAX : std::max(next->from_ns, time_ns);
}

}  // namespace arctrace::reader
