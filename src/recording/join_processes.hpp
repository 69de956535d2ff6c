// Joins running processes to a session, and finds the threads of one of them.
#pragma once

#include <absl/status/statusor.h>
#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "src/buffer/buffer_view.hpp"
#include "src/recorder/attach/join_process.hpp"
#include "src/recorder/buffer/buffer.hpp"
#include "src/recorder/file/session_records.hpp"
#include "src/recorder/kernel/kernel_writer.hpp"
#include "src/recording/events.hpp"
#include "src/recording/options.hpp"

namespace arctrace::recording {

// The threads of a process that was joined, and the functions in which some of them wait
// all the time.
class ProcessThreads {
 public:
  // Reads which threads the process has. `view`: of the buffer, which must outlive this.
  ProcessThreads(pid_t pid, const BufferView& view);

  // Finds the threads that wait, and does so once more if it is called again after a
  // while: a thread that was stopped to join the process may not wait again yet.
  void scan();

  // The threads, with the functions of those that have waited since then if
  // `with_functions`. To be called once.
  recorder::JoinedThreads finish(bool with_functions);

 private:
  struct Waiting {
    recorder::WaitingThread thread;
    uint64_t since_ticks;
  };

  const pid_t pid_;
  const BufferView view_;
  recorder::JoinedThreads all_;
  std::vector<Waiting> waiting_;
  int scans_ = 0;
  std::chrono::steady_clock::time_point first_scan_;
};

// The request to the processes options.pids. Error: the shim is not there, the options do
// not fit, or one of the processes cannot be joined; nothing was done to any.
absl::StatusOr<recorder::JoinRequest> join_request(const RecordOptions& options,
                                                   const recorder::Buffer& buffer,
                                                   Events& events);

struct JoinedProcesses {
  std::vector<pid_t> pids;
  // They have children that began before and are not recorded.
  bool leaves_children = false;
};

// Joins the processes one after the other. `events` is told a line about each, and about
// their children that are not recorded. `bpf`: traces them from then on; may be null.
JoinedProcesses join_processes(const std::vector<pid_t>& pids,
                               const recorder::JoinRequest& request,
                               recorder::KernelWriter* bpf, Events& events);

// The file of the program that the process executes: its path, or if another file has
// that path by now, one that leads to it as long as the process lives.
std::string program_of(pid_t pid);

// Whether all of the processes have ended.
bool have_ended(const std::vector<pid_t>& pids);

}  // namespace arctrace::recording
