// Time that a thread ran and did not run, as the kernel's records tell it.
#pragma once

#include <cstdint>

namespace arctrace::reader {

// What a thread does with a CPU.
enum class RunState : uint8_t { kRunning, kReady, kBlocked };

// Parts of the wall-clock time of what it belongs to.
struct CpuTime {
  uint64_t cpu_ns = 0;    // on a CPU; known when the rest is
  uint64_t off_ns = 0;    // not on a CPU
  uint64_t ready_ns = 0;  // of this: could have run (preempted, or woken and waiting)
  uint64_t switches = 0;  // how often it left the CPU

  bool empty() const { return cpu_ns == 0 && off_ns == 0 && switches == 0; }
  CpuTime& operator+=(const CpuTime& other) {
    cpu_ns += other.cpu_ns;
    off_ns += other.off_ns;
    ready_ns += other.ready_ns;
    switches += other.switches;
    return *this;
  }
  CpuTime& operator-=(const CpuTime& other) {
    cpu_ns -= other.cpu_ns;
    off_ns -= other.off_ns;
    ready_ns -= other.ready_ns;
    switches -= other.switches;
    return *this;
  }
};

// Which of these times the kernel's records tell.
enum class KnownTimes : uint8_t {
  kNone,
  kOffCpu,  // not ready_ns: perf's events don't say when a blocked thread is woken
  kReady,   // all
};

// What a report's base and cum times are of.
enum class ReportClock : uint8_t { kWall, kCpu, kOffCpu };

// The share of `wall_ns`, of which `off_ns` were off the CPU, that counts on `clock`.
inline uint64_t on_clock(ReportClock clock, uint64_t wall_ns, uint64_t off_ns) {
  switch (clock) {
    case ReportClock::kCpu:
      return wall_ns - off_ns;
    case ReportClock::kOffCpu:
      return off_ns;
    case ReportClock::kWall:
      break;
  }
  return wall_ns;
}

}  // namespace arctrace::reader
