// Requests of other processes to the kernel writer while a session is recorded: they
// store a request in the control page, and the process that has loaded the programs
// carries it out (SPEC.md KRN-9).
#pragma once

#include <absl/status/status.h>

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "src/buffer/buffer_view.hpp"
#include "src/recorder/kernel/kernel_writer.hpp"

namespace arctrace::recorder {

class KernelRequests {
 public:
  // Which processes are recorded: those that the recorder chose, or also those that join
  // the session later.
  enum class Processes : uint8_t { kChosen, kThatJoin };

  // Serves requests from now on, in a thread of its own. `writer` records `events` (enum
  // arctrace_kernel_event). `warn` is called, also in that thread, with a line that says
  // which events can't be recorded and why. All must outlive this object.
  KernelRequests(const BufferView& view, KernelWriter& writer, uint32_t events,
                 Processes processes, std::function<void(const std::string&)> warn);
  KernelRequests(const KernelRequests&) = delete;
  KernelRequests& operator=(const KernelRequests&) = delete;
  // From then on the control page says that no events of the kernel are recorded.
  ~KernelRequests();

 private:
  void run();
  // Returns whether it changed anything, or tried to.
  bool set_events();
  void add_parent();
  void add_writers();
  void tell_recorded(uint32_t events);
  void tell_missing();

  const BufferView view_;
  KernelWriter& writer_;
  const Processes processes_;
  const std::function<void(const std::string&)> warn_;
  // The identities and pids of the processes that had joined at the last check, sorted.
  std::vector<std::pair<uint32_t, uint32_t>> joined_;
  std::mutex mutex_;  // guards the members below
  std::condition_variable ends_;
  bool is_over_ = false;
  std::thread thread_;
};

// Asks the loader of the programs to record the events `on` and not to record those of
// `off`. If no process has loaded them, the next collector of the session does it.
void ask_for_kernel_events(const BufferView& view, uint32_t on, uint32_t off);
// Waits until the request is carried out. FailedPrecondition: no process has loaded the
// programs. Unavailable: the request was refused. DeadlineExceeded: nobody answers.
absl::Status wait_for_kernel_events(const BufferView& view, uint32_t on, uint32_t off);

// Asks the loader to record the processes that the calling process forks from now on, and
// waits a moment for that. Does nothing if there is no loader, or it can't know the
// process.
void ask_for_kernel_records_of_children(const BufferView& view);

}  // namespace arctrace::recorder
