// The time in which a thread ran and did not run, by the kernel's records.
#pragma once

#include <cstdint>

namespace arctrace::reader {

// Whether a thread has a CPU, waits for one, or waits for something else; or the kernel's
// records that would tell are missing.
enum class RunState : uint8_t { kRunning, kReady, kBlocked, kNotKnown };

// Parts of the wall-clock time of a call, a node of a tree, or a thread: cpu_ns, off_ns
// and unknown_ns add up to it.
struct CpuTime {
  uint64_t cpu_ns = 0;      // on a CPU; set once the other times are complete
  uint64_t off_ns = 0;      // not on a CPU
  uint64_t unknown_ns = 0;  // records of the kernel's are missing
  uint64_t ready_ns = 0;    // the part of off_ns in which the thread could have run
  uint64_t switches = 0;    // how often it left the CPU
  // That came upon it: all by their own records, else those that woke a thread.
  uint64_t interrupts = 0;

  bool empty() const {
    return cpu_ns == 0 && off_ns == 0 && unknown_ns == 0 && switches == 0 &&
           interrupts == 0;
  }
  // What of so much time was on a CPU, if these are the other parts of it.
  uint64_t cpu_of(uint64_t wall_ns) const { return wall_ns - off_ns - unknown_ns; }
  // Adds a time in which the thread was in this state; of one that ran nothing is added.
  void add(RunState state, uint64_t time_ns) {
    if (state == RunState::kNotKnown) unknown_ns += time_ns;
    if (state == RunState::kReady || state == RunState::kBlocked) off_ns += time_ns;
    if (state == RunState::kReady) ready_ns += time_ns;
  }
  CpuTime& operator+=(const CpuTime& other) {
    cpu_ns += other.cpu_ns;
    off_ns += other.off_ns;
    unknown_ns += other.unknown_ns;
    ready_ns += other.ready_ns;
    switches += other.switches;
    interrupts += other.interrupts;
    return *this;
  }
  CpuTime& operator-=(const CpuTime& other) {
    cpu_ns -= other.cpu_ns;
    off_ns -= other.off_ns;
    unknown_ns -= other.unknown_ns;
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

// Which clock a report's self and total times are measured on.
enum class ReportClock : uint8_t { kWall, kCpu, kOffCpu };

// The share of `wall_ns` that counts on `clock`; `parts` are those of it.
inline uint64_t on_clock(ReportClock clock, uint64_t wall_ns, const CpuTime& parts) {
  switch (clock) {
    case ReportClock::kCpu:
      return parts.cpu_of(wall_ns);
    case ReportClock::kOffCpu:
      return parts.off_ns;
    case ReportClock::kWall:
      break;
  }
  return wall_ns;
}

}  // namespace arctrace::reader
