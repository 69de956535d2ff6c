#include "src/collector/cpu_blocks.hpp"

#include <algorithm>

#include "src/clock.hpp"
#include "src/collector/session_records.hpp"
#include "src/protocol/cpu_chain.hpp"
#include "src/shared_atomics.hpp"

namespace arctrace {

using A = IpcAtomics;

namespace {

// When CLOCK_MONOTONIC said so; `now` if it never did. The header is shared memory, but
// what is wrong there makes a wrong time and no more.
uint64_t ticks_at(const BufferView& view, uint64_t monotonic_ns, uint64_t now) {
  const uint64_t now_ns = read_monotonic_ns();
  if (monotonic_ns == 0 || monotonic_ns > now_ns) return now;
  auto& header = *reinterpret_cast<arctrace_session_header*>(view.base());
  const double past = static_cast<double>(now_ns - monotonic_ns) / 1e9 *
                      static_cast<double>(A::load_relaxed(header.ticks_per_second));
  return past < static_cast<double>(now) ? now - static_cast<uint64_t>(past) : 0;
}

}  // namespace

void feed_cpus(const BufferView& view) {
  const Geometry& geometry = view.geometry();
  if (geometry.cpu_count == 0) return;
  const uint32_t share = geometry.block_count / 4 / geometry.cpu_count;
  const uint32_t wanted = std::clamp(share, 1u, ARCTRACE_CPU_SPARES);
  for (uint32_t cpu = 0; cpu < geometry.cpu_count; ++cpu) {
    CpuChain<A>::hand_over(view, cpu, wanted, read_ticks(geometry.clock));
  }
}

std::vector<uint64_t> say_cpu_losses(const BufferView& view, RecordBuilder& said,
                                     uint64_t ticks) {
  std::vector<uint64_t> by_cpu(view.geometry().cpu_count);
  for (uint32_t cpu = 0; cpu < view.geometry().cpu_count; ++cpu) {
    arctrace_cpu_slot& slot = view.cpu_slot(cpu);
    const uint64_t lost = by_cpu[cpu] = A::load_relaxed(slot.lost);
    const uint64_t reported = A::load_relaxed(slot.reported);
    if (lost <= reported) continue;
    say_lost(said, ticks, ARCTRACE_WRITER_COLLECTOR, ARCTRACE_LOST_KERNEL,
             ARCTRACE_LOST_SESSION | ARCTRACE_LOST_CPU | cpu << ARCTRACE_LOST_CPU_SHIFT,
             lost - reported, ticks_at(view, A::load_relaxed(slot.lost_since), ticks));
  }
  return by_cpu;
}

void confirm_cpu_losses(const BufferView& view, const std::vector<uint64_t>& by_cpu) {
  for (uint32_t cpu = 0; cpu < by_cpu.size(); ++cpu) {
    A::store_relaxed(view.cpu_slot(cpu).reported, by_cpu[cpu]);
  }
}

uint64_t cpu_losses(const BufferView& view) {
  uint64_t sum = 0;
  for (uint32_t cpu = 0; cpu < view.geometry().cpu_count; ++cpu) {
    sum += A::load_relaxed(view.cpu_slot(cpu).lost);
  }
  return sum;
}

}  // namespace arctrace
