#include "src/recorder/drain/cpu_server.hpp"

#include <sched.h>
#include <sys/resource.h>

#include <ctime>

#include "src/recorder/drain/cpu_blocks.hpp"

namespace arctrace {
namespace {

constexpr long kLongestPollNs = 20'000'000;
constexpr int kFirst = -20;  // the lowest nice value

}  // namespace

// On Linux a nice value is a thread's own.
void hurry_this_thread() { setpriority(PRIO_PROCESS, 0, kFirst); }

void CpuServer::start(const BufferView& view) {
  thread_ = std::thread([this, view] {
    // Before all others, whose number would make it late: a round of it is short.
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

}  // namespace arctrace
