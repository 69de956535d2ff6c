// Time that a thread did not run, as the kernel's dispatch records tell it.
#pragma once

#include <cstdint>

namespace arctrace::reader {

// All of it lies within the wall-clock time of what it belongs to.
struct OffTime {
  uint64_t off_ns = 0;    // not on a CPU
  uint64_t ready_ns = 0;  // of this: could have run (preempted, or woken and waiting)
  uint64_t switches = 0;  // how often it left the CPU

  bool empty() const { return off_ns == 0 && switches == 0; }
  OffTime& operator+=(const OffTime& other) {
    off_ns += other.off_ns;
    ready_ns += other.ready_ns;
    switches += other.switches;
    return *this;
  }
  OffTime& operator-=(const OffTime& other) {
    off_ns -= other.off_ns;
    ready_ns -= other.ready_ns;
    switches -= other.switches;
    return *this;
  }
};

}  // namespace arctrace::reader
