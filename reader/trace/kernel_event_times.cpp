#include "reader/trace/kernel_event_times.hpp"

#include <arctrace/format.h>

namespace arctrace::reader {

uint32_t kernel_events_of(uint32_t recorded) {
  return recorded >> ARCTRACE_KERNEL_EVENT_SHIFT & ARCTRACE_KERNEL_EVENTS_ALL;
}

void KernelEventTimes::add(int64_t time_ns, uint32_t recorded) {
  if ((recorded & ARCTRACE_GATE_KERNEL) == 0) return;
  uint32_t events = kernel_events_of(recorded);
  if (!stretches_.empty() && stretches_.back().events == events) return;
  if (stretches_.size() >= kMax) {
    if (stretches_.back().events == 0) return;
    events = 0;
  }
  ever_ |= events;
  if (!stretches_.empty()) stretches_.back().to_ns = time_ns;
  stretches_.push_back({time_ns, INT64_MAX, events});
}

}  // namespace arctrace::reader
