#include "src/recorder/attach/stopped_threads.hpp"

#include <absl/status/status.h>
#include <absl/strings/numbers.h>
#include <absl/strings/str_cat.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <filesystem>
#include <set>
#include <string_view>
#include <thread>
#include <utility>

namespace arctrace {
namespace {

// The thread's state, as /proc has it: 'R', 'S', ...; 0: it is gone.
char state_of(pid_t pid, pid_t tid) {
  // Others stand still meanwhile.
  std::array<char, 256> text{};
  const int file = open(absl::StrCat("/proc/", pid, "/task/", tid, "/stat").c_str(),
                        O_RDONLY | O_CLOEXEC);
  if (file < 0) return '\0';
  const ssize_t size = read(file, text.data(), text.size());
  close(file);
  const std::string_view line(text.data(), size > 0 ? static_cast<size_t>(size) : 0);
  const size_t name_end = line.rfind(')');  // the name may hold anything
  return name_end == std::string_view::npos || name_end + 2 >= line.size()
             ? '\0'
             : line[name_end + 2];
}

bool has_ended(pid_t pid, pid_t tid) {
  const char state = state_of(pid, tid);
  return state == '\0' || state == 'Z' || state == 'X';
}

// The kernel does not wake it for a stop: for long, a parent that waits in vfork() until
// its child has gone on; for moments, one that waits for memory.
bool is_uninterruptible(pid_t pid, pid_t tid) { return state_of(pid, tid) == 'D'; }

// Waits for some ms that it is not so.
bool may_be_stopped(pid_t pid, pid_t tid) {
  constexpr int kTries = 20;
  constexpr auto kPause = std::chrono::microseconds(250);
  for (int i = 0; i < kTries; ++i) {
    if (!is_uninterruptible(pid, tid)) return true;
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

bool contains(const std::vector<CodeMemory>& code, uint64_t address) {
  return std::any_of(code.begin(), code.end(), [address](const CodeMemory& range) {
    return address >= range.low && address < range.high;
  });
}

// One thread that stands in the code.
absl::Status run_out_of(const std::vector<CodeMemory>& code, StoppedThread& thread) {
  constexpr int kTries = 100;
  constexpr auto kTime = std::chrono::microseconds(20);
  for (int i = 0; contains(code, thread.program_counter()); ++i) {
    if (i == kTries) {
      return absl::UnavailableError(
          absl::StrCat("thread ", thread.tid(), " stays in arctrace's code"));
    }
    if (absl::Status status = thread.run_for(kTime); !status.ok()) return status;
  }
  return absl::OkStatus();
}

// A thread that ends is no reason to give up: the next try stops those that are left.
absl::Status unless_ended(const absl::Status& status) {
  return absl::IsAborted(status) ? absl::UnavailableError(status.message()) : status;
}

}  // namespace

absl::Status StoppedThreads::stop_these(pid_t pid, const std::vector<pid_t>& tids,
                                        HurriedThread& hurried) {
  const auto unavailable = [](pid_t tid) {
    return absl::UnavailableError(
        absl::StrCat("thread ", tid, " waits where it cannot be stopped; try again"));
  };
  // What is waited for here, nobody else has to wait for.
  for (const pid_t tid : tids) {
    if (!may_be_stopped(pid, tid)) return unavailable(tid);
  }
  if (threads_.empty()) since_ = std::chrono::steady_clock::now();
  std::vector<StoppedThread> asked;
  for (const pid_t tid : tids) {
    if (is_uninterruptible(pid, tid)) return unavailable(tid);
    absl::StatusOr<StoppedThread> thread = StoppedThread::ask_to_stop(tid);
    if (thread.ok()) {
      asked.push_back(*std::move(thread));
    } else if (!has_ended(pid, tid)) {
      return thread.status();
    }
  }
  for (StoppedThread& thread : asked) {
    if (!thread.has_stopped()) hurried.hurry(thread.tid());
    absl::Status status = thread.await_stop();
    hurried.calm();
    if (status.ok()) {
      threads_.push_back(std::move(thread));
    } else if (!has_ended(pid, thread.tid())) {
      return unless_ended(status);  // it is about to
    }
  }
  return absl::OkStatus();
}

absl::Status StoppedThreads::stop_all_but(pid_t pid, pid_t running,
                                          HurriedThread& hurried) {
  std::set<pid_t> known{running};
  for (;;) {
    const std::vector<pid_t> begun = new_threads(pid, known);
    if (begun.empty()) return absl::OkStatus();
    absl::Status status = stop_these(pid, begun, hurried);
    if (!status.ok()) return status;
  }
}

absl::Status StoppedThreads::leave_code(const std::vector<CodeMemory>& code,
                                        HurriedThread& hurried) {
  for (StoppedThread& thread : threads_) {
    if (!contains(code, thread.program_counter())) continue;
    hurried.hurry(thread.tid());
    absl::Status status = run_out_of(code, thread);
    hurried.calm();
    if (!status.ok()) return unless_ended(status);
  }
  return absl::OkStatus();
}

}  // namespace arctrace
