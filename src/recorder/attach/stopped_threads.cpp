#include "src/recorder/attach/stopped_threads.hpp"

#include <absl/status/status.h>
#include <absl/strings/numbers.h>
#include <absl/strings/str_cat.h>
#include <pthread.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <thread>
#include <utility>

namespace arctrace {
namespace {

// The thread's state, as /proc has it: 'R', 'S', ...; 0: it is gone.
char state_of(pid_t pid, pid_t tid) {
  std::ifstream file(absl::StrCat("/proc/", pid, "/task/", tid, "/stat"));
  std::string line;
  std::getline(file, line);
  const size_t name_end = line.rfind(')');  // the name may hold anything
  return name_end == std::string::npos || name_end + 2 >= line.size()
             ? '\0'
             : line[name_end + 2];
}

bool has_ended(pid_t pid, pid_t tid) {
  const char state = state_of(pid, tid);
  return state == '\0' || state == 'Z' || state == 'X';
}

// Not a thread that the kernel does not wake for that: for long, a parent that waits in
// vfork() until its child has gone on; for moments, one that waits for memory.
bool may_be_stopped(pid_t pid, pid_t tid) {
  constexpr int kTries = 20;
  constexpr auto kPause = std::chrono::microseconds(250);
  for (int i = 0; i < kTries; ++i) {
    if (state_of(pid, tid) != 'D') return true;
    std::this_thread::sleep_for(kPause);
  }
  return false;
}

// Those that are not in `known`, which they are added to.
std::vector<pid_t> new_threads(pid_t pid, std::set<pid_t>& known) {
  namespace fs = std::filesystem;
  std::vector<pid_t> found;
  std::error_code error;
  fs::directory_iterator task(absl::StrCat("/proc/", pid, "/task"), error);
  for (; !error && task != fs::directory_iterator(); task.increment(error)) {
    pid_t tid = 0;
    if (!absl::SimpleAtoi(task->path().filename().native(), &tid)) continue;
    if (known.insert(tid).second && !has_ended(pid, tid)) found.push_back(tid);
  }
  return found;
}

// Asks them to stop, and waits for them. Appends them to `stopped`.
absl::Status stop_these(pid_t pid, const std::vector<pid_t>& tids,
                        std::vector<StoppedThread>& stopped) {
  std::vector<StoppedThread> asked;
  for (const pid_t tid : tids) {
    if (!may_be_stopped(pid, tid)) {
      return absl::UnavailableError(
          absl::StrCat("thread ", tid, " waits where it cannot be stopped; try again"));
    }
    absl::StatusOr<StoppedThread> thread = StoppedThread::ask_to_stop(tid);
    if (thread.ok()) {
      asked.push_back(*std::move(thread));
    } else if (!has_ended(pid, tid)) {
      return thread.status();
    }
  }
  for (StoppedThread& thread : asked) {
    absl::Status status = thread.await_stop();
    if (status.ok()) {
      stopped.push_back(std::move(thread));
    } else if (!has_ended(pid, thread.tid())) {
      return status;
    }
  }
  return absl::OkStatus();
}

bool contains(const std::vector<CodeRange>& code, uint64_t address) {
  return std::any_of(code.begin(), code.end(), [address](const CodeRange& range) {
    return address >= range.low && address < range.high;
  });
}

}  // namespace

RealTimePriority::RealTimePriority() {
  sched_param lowest{};
  lowest.sched_priority = 1;
  has_changed_ = pthread_getschedparam(pthread_self(), &policy_, &before_) == 0 &&
                 pthread_setschedparam(pthread_self(), SCHED_FIFO, &lowest) == 0;
}

RealTimePriority::~RealTimePriority() {
  if (has_changed_) pthread_setschedparam(pthread_self(), policy_, &before_);
}

absl::StatusOr<StoppedThreads> StoppedThreads::stop_all_but(pid_t pid, pid_t running) {
  StoppedThreads all;
  std::set<pid_t> known{running};
  for (;;) {
    const std::vector<pid_t> begun = new_threads(pid, known);
    if (begun.empty()) return all;
    absl::Status status = stop_these(pid, begun, all.threads_);
    if (!status.ok()) return status;
  }
}

absl::Status StoppedThreads::leave_code(const std::vector<CodeRange>& code) {
  constexpr int kTries = 100;
  constexpr auto kTime = std::chrono::microseconds(20);
  for (StoppedThread& thread : threads_) {
    for (int i = 0; contains(code, thread.program_counter()); ++i) {
      if (i == kTries) {
        return absl::UnavailableError(
            absl::StrCat("thread ", thread.tid(), " stays in arctrace's code"));
      }
      if (absl::Status status = thread.run_for(kTime); !status.ok()) return status;
    }
  }
  return absl::OkStatus();
}

}  // namespace arctrace
