// When the kernel's events were recorded that can be switched on and off one by one, as
// ENABLED records tell it (enum arctrace_kernel_event).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace arctrace::reader {

class KernelEventTimes {
 public:
  struct Stretch {
    int64_t from_ns, to_ns;  // INT64_MAX: to the end
    uint32_t events;         // that are recorded; also none
  };
  // What is kept. From so many changes on, nothing is known to be recorded.
  static constexpr size_t kMax = 1000;

  // From `time_ns` on, ENABLED has this word. Times must not decrease.
  void add(int64_t time_ns, uint32_t recorded);

  // In order of time, from the first ENABLED on. Without the kernel's records, these are
  // switched off themselves: such a time is part of the stretch before.
  std::span<const Stretch> all() const { return stretches_; }
  // Those that were recorded at some time.
  uint32_t ever() const { return ever_; }

 private:
  std::vector<Stretch> stretches_;
  uint32_t ever_ = 0;
};

// The events of an ENABLED record's word.
uint32_t kernel_events_of(uint32_t recorded);

}  // namespace arctrace::reader
