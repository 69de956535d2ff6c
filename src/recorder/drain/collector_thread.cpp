#include "src/recorder/drain/collector_thread.hpp"

#include <absl/strings/str_cat.h>
#include <sched.h>
#include <unistd.h>

#include <cerrno>
#include <memory>
#include <thread>

namespace arctrace::recorder {
namespace {

constexpr uint32_t kMaskedCpusMax = 1u << 16;  // more than any kernel has

// Returns an errno, or 0.
int move_to_cpu(uint32_t cpu) {
  if (cpu >= kMaskedCpusMax) return EINVAL;
  const size_t count = size_t{cpu} + 1;
  const std::unique_ptr<cpu_set_t, void (*)(cpu_set_t*)> set(
      CPU_ALLOC(count), [](cpu_set_t* made) { CPU_FREE(made); });
  if (set == nullptr) return EINVAL;
  const size_t size = CPU_ALLOC_SIZE(count);
  CPU_ZERO_S(size, set.get());
  CPU_SET_S(cpu, size, set.get());
  return sched_setaffinity(0, size, set.get()) == 0 ? 0 : errno;
}

// Returns an errno, or 0. What the thread starts has the usual policy.
int run_before_others(uint32_t priority) {
  const sched_param param{.sched_priority = static_cast<int>(priority)};
  return sched_setscheduler(0, SCHED_FIFO | SCHED_RESET_ON_FORK, &param) == 0 ? 0 : errno;
}

}  // namespace

absl::Status check_collector_thread(const CollectorThread& thread,
                                    const char* cpu_option) {
  if (!thread.cpu.has_value() && thread.rt_priority == 0) return absl::OkStatus();
  int cpu_error = 0;
  int priority_error = 0;
  std::thread([&] {
    if (thread.cpu.has_value()) cpu_error = move_to_cpu(*thread.cpu);
    if (thread.rt_priority != 0) priority_error = run_before_others(thread.rt_priority);
  }).join();
  if (cpu_error != 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        cpu_option, ": this process can't run on CPU ", *thread.cpu, " (it has ",
        sysconf(_SC_NPROCESSORS_ONLN), ", from 0; see taskset -p $$)"));
  }
  if (priority_error != 0) {
    return absl::PermissionDeniedError(
        "--rt-priority: not permitted: run arctrace as root, or raise the limit of "
        "real-time priorities (ulimit -r)");
  }
  return absl::OkStatus();
}

void become_collector_thread(const CollectorThread& thread) {
  if (thread.cpu.has_value()) move_to_cpu(*thread.cpu);
  if (thread.rt_priority != 0) run_before_others(thread.rt_priority);
}

}  // namespace arctrace::recorder
