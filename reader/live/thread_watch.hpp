// A live thread's state and time on the CPU from /proc, for sessions without records of
// the kernel. It is looked at, not asked: the thread is not touched.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>

#include "reader/live/live_cpu.hpp"

namespace arctrace::reader {

// What /proc/PID/task/TID/stat says.
struct ThreadStat {
  char state = '?';
  uint64_t cpu_ticks = 0;    // in user and kernel mode, in ticks of sysconf(_SC_CLK_TCK)
  uint64_t begin_ticks = 0;  // after the machine's start
};

// nullopt: the text is not such a file's. Its second field, the name, may be anything.
std::optional<ThreadStat> parse_thread_stat_untrusted(std::string_view text);

// "running or ready", "sleeps", "waits for a disk or the like", ...
std::string_view thread_state_text(char state);

// Reads the file of one thread at a time, and no more than a kilobyte of it.
class ThreadWatch {
 public:
  // `pid_namespace`: the inode of ours, whose numbers /proc has; 0: not known, nothing is
  // read. `first_namespace`: that of a machine's first one. Shares are of the last
  // `window_ns` at most.
  ThreadWatch(uint32_t pid_namespace, uint32_t first_namespace, int64_t window_ns,
              std::string proc = "/proc")
      : pid_namespace_(pid_namespace == first_namespace ? 0 : pid_namespace),
        can_read_(pid_namespace != 0),
        window_ns_(window_ns),
        proc_(std::move(proc)) {}

  // What is known of the thread at `now_ns`, a monotonic time. The file is read if it is
  // another thread than the last time, or kEveryNs have passed since. `pid_namespace`: an
  // inode; 0: the first one.
  const LiveCpu& look(uint32_t pid, uint32_t tid, uint32_t pid_namespace, int64_t now_ns);

  static constexpr int64_t kEveryNs = 400'000'000;

 private:
  struct Sample {
    int64_t time_ns;
    uint64_t cpu_ns;
  };
  std::optional<ThreadStat> read_stat(uint32_t pid, uint32_t tid) const;
  void add(const ThreadStat& stat, int64_t now_ns);

  const uint32_t pid_namespace_;  // 0: the first one
  const bool can_read_;
  const int64_t window_ns_;
  const std::string proc_;
  // Of the thread that was looked at last.
  uint32_t pid_ = 0, tid_ = 0;
  uint64_t begin_ticks_ = 0;
  int64_t looked_ns_ = 0;
  std::deque<Sample> samples_;
  LiveCpu cpu_;
};

}  // namespace arctrace::reader
