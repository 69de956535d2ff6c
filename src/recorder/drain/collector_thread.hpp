// On which CPU the collector's thread runs, and before which other threads.
#pragma once

#include <absl/status/status.h>

#include <cstdint>
#include <optional>

namespace arctrace::recorder {

struct CollectorThread {
  std::optional<uint32_t> cpu;  // nullopt: any that this process may use
  uint32_t rt_priority = 0;     // of SCHED_FIFO, 1 to 99; 0: the usual policy
};

// Whether a thread of this process may run so, which a thread of its own tries. Error: a
// sentence for the user, which names the option.
absl::Status check_collector_thread(const CollectorThread& thread,
                                    const char* cpu_option = "--collector-cpu");

// Has the calling thread run so, as far as that is permitted.
void become_collector_thread(const CollectorThread& thread);

}  // namespace arctrace::recorder
