// The time in which a thread ran and did not run, by the kernel's records.
#pragma once

#include <cstdint>

namespace arctrace::reader {

// Whether a thread has a CPU, waits for one, or waits for something else.
enum class RunState : uint8_t { kRunning, kReady, kBlocked };

// Parts of the wall-clock time of a call, a node of a tree, or a thread.
struct CpuTime {
  uint64_t cpu_ns = 0;      // on a CPU; set once the other times are complete
  uint64_t off_ns = 0;      // not on a CPU
  uint64_t ready_ns = 0;    // the part of off_ns in which the thread could have run
  uint64_t switches = 0;    // how often it left the CPU
  uint64_t interrupts = 0;  // that came upon it and woke a thread

  bool empty() const {
    return cpu_ns == 0 && off_ns == 0 && switches == 0 && interrupts == 0;
  }
  CpuTime& operator+=(const CpuTime& other) {
    cpu_ns += other.cpu_ns;
    off_ns += other.off_ns;
    ready_ns += other.ready_ns;
    switches += other.switches;
    interrupts += other.interrupts;
    return *this;
  }
  CpuTime& operator-=(const CpuTime& other) {
    cpu_ns -= other.cpu_ns;
    off_ns -= other.off_ns;
    ready_ns -= other.ready_ns;
    switches -= other.switches;
    interrupts -= other.interrupts;
    return *this;
  }
};

// Which of these times follow from the kernel's records.
enum class KnownTimes : uint8_t {
  kNone,
  kOffCpu,  // not ready_ns: perf events do not say when a blocked thread is woken
  kReady,   // all
};

// Which clock a report's base and cum times are measured on.
enum class ReportClock : uint8_t { kWall, kCpu, kOffCpu };

// The share of `wall_ns` that counts on `clock`; `off_ns` of it were off the CPU.
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
