// Keeps blocks free for the CPUs, by amounts that a busy CPU can write before the
// recorder gets a turn.
#include "src/recorder/drain/cpu_blocks.hpp"

#include <sched.h>
#include <sys/resource.h>

#include <algorithm>
#include <ctime>

#include "src/base/shared_atomics.hpp"
#include "src/buffer/clock.hpp"
#include "src/protocol/cpu_chain.hpp"
#include "src/recorder/file/session_records.hpp"

namespace arctrace::recorder {

namespace {

// The rate of a CPU that does nothing but switch between two processes, one waking the
// other.
constexpr uint64_t kCpuBytesPerSecond = 40'000'000;
constexpr uint64_t kAheadBytesMax = 4u << 20;
constexpr uint64_t kShortestPollNs = 500'000;

// The number of bytes that the CPUs may write while the recorder is late; in overwrite
// mode so much is reserved.
uint64_t ahead_bytes(const Geometry& geometry) {
  const uint64_t half = uint64_t{geometry.block_count} * geometry.block_size / 2;
  return std::min(half, kAheadBytesMax);
}

// A pass is due when a fourth of these bytes is written, because on a busy machine it
// comes late.
constexpr uint64_t kRoundsAhead = 4;

// The ticks at a time of CLOCK_MONOTONIC; `now` if that is 0 or in the future. The header
// is shared memory, but a wrong rate there makes no more than a wrong time.
uint64_t ticks_at(const BufferView& view, uint64_t monotonic_ns, uint64_t now) {
  const uint64_t now_ns = read_monotonic_ns();
  if (monotonic_ns == 0 || monotonic_ns > now_ns) return now;
  auto& header = *reinterpret_cast<arctrace_session_header*>(view.base());
  const double past =
      static_cast<double>(now_ns - monotonic_ns) / 1e9 *
      static_cast<double>(IpcAtomics::load_relaxed(header.ticks_per_second));
  return past < static_cast<double>(now) ? now - static_cast<uint64_t>(past) : 0;
}

}  // namespace

long poll_interval_ns(const Geometry& geometry, long at_most) {
  if (geometry.cpu_count == 0) return at_most;
  const uint64_t wanted =
      ahead_bytes(geometry) / kRoundsAhead * 1'000'000'000 / kCpuBytesPerSecond;
  return static_cast<long>(
      std::clamp(wanted, kShortestPollNs, static_cast<uint64_t>(at_most)));
}

uint64_t least_kernel_buffer(uint32_t cpus) {
  constexpr uint64_t kForEachCpu = 512u << 10;
  constexpr uint64_t kMost = 16u << 20;
  return std::min(cpus * kForEachCpu, kMost);
}

uint64_t sync_interval_ns(const Geometry& geometry) {
  return geometry.cpu_count == 0 ? 1'000'000'000 : 250'000'000;
}

void serve_cpus(const BufferView& view) {
  const Geometry& geometry = view.geometry();
  if (geometry.cpu_count == 0) return;
  if (geometry.mode == ARCTRACE_MODE_OVERWRITE) {
    const uint64_t wanted = ahead_bytes(geometry) / geometry.block_size;
    CpuChain<IpcAtomics>::free_ahead(view, static_cast<uint32_t>(wanted));
  }
  CpuChain<IpcAtomics>::search_again(view);
}

std::vector<uint64_t> report_cpu_losses(const BufferView& view, RecordBuilder& records,
                                        uint64_t ticks) {
  std::vector<uint64_t> by_cpu(view.geometry().cpu_count);
  for (uint32_t cpu = 0; cpu < view.geometry().cpu_count; ++cpu) {
    arctrace_cpu_slot& slot = view.cpu_slot(cpu);
    const uint64_t lost = by_cpu[cpu] = IpcAtomics::load_relaxed(slot.lost);
    const uint64_t reported = IpcAtomics::load_relaxed(slot.reported);
    if (lost <= reported) continue;
    add_lost(records, ticks, ARCTRACE_WRITER_COLLECTOR, ARCTRACE_LOST_KERNEL,
             ARCTRACE_LOST_SESSION | ARCTRACE_LOST_CPU | cpu << ARCTRACE_LOST_CPU_SHIFT,
             lost - reported,
             ticks_at(view, IpcAtomics::load_relaxed(slot.lost_since), ticks));
  }
  return by_cpu;
}

void confirm_cpu_losses(const BufferView& view, const std::vector<uint64_t>& by_cpu) {
  for (uint32_t cpu = 0; cpu < by_cpu.size(); ++cpu) {
    IpcAtomics::store_relaxed(view.cpu_slot(cpu).reported, by_cpu[cpu]);
  }
}

namespace {

constexpr long kLongestPollNs = 20'000'000;
constexpr int kFirst = -20;  // the lowest nice value

}  // namespace

// On Linux each thread has a nice value of its own.
void hurry_this_thread() { setpriority(PRIO_PROCESS, 0, kFirst); }

void CpuServer::start(const BufferView& view) {
  thread_ = std::thread([this, view] {
    // The thread runs before all others, because so many would make it late, and one pass
    // is short.
    const sched_param lowest{.sched_priority = sched_get_priority_min(SCHED_FIFO)};
    if (sched_setscheduler(0, SCHED_FIFO | SCHED_RESET_ON_FORK, &lowest) != 0) {
      hurry_this_thread();
    }
    const timespec interval{0, poll_interval_ns(view.geometry(), kLongestPollNs)};
    while (!stopping_.load(std::memory_order_relaxed)) {
      serve_cpus(view);
      nanosleep(&interval, nullptr);
    }
  });
}

void CpuServer::stop() {
  stopping_.store(true, std::memory_order_relaxed);
  if (thread_.joinable()) thread_.join();
}

}  // namespace arctrace::recorder
