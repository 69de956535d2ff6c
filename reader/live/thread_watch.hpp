// A live thread's state and time on the CPU from /proc, for sessions without records of
// the kernel. Reading /proc does not disturb the thread.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace arctrace::reader {

// The state of a live thread at present, and its share of CPU time in the last seconds.
enum class CpuSource : uint8_t {
  kNone,    // nothing is known
  kKernel,  // the kernel's records of the session
  kProc,    // /proc, when it was read
};

struct LiveCpu {
  CpuSource source = CpuSource::kNone;
  std::string state;       // "running", "ready: woken", "blocked: sleeps", "not known"
  bool is_on_cpu = false;  // only of kKernel: /proc does not tell running from ready
  int64_t for_ns = -1;     // how long the state has lasted; negative: not known
  // The times within the last `wall_ns`, at most a window: on a CPU; and, if has_ready,
  // without one although the thread could have run. wall_ns is 0 as long as nothing is
  // known of the thread.
  uint64_t wall_ns = 0, cpu_ns = 0, ready_ns = 0;
  uint64_t unknown_ns = 0;  // of it, in no known state: the kernel's records are missing
  bool has_ready = false;
  std::vector<uint64_t> history;  // thousandths on a CPU of each piece, the newest last
};

// The facts in /proc/PID/task/TID/stat.
struct ThreadStat {
  char state = '?';
  uint64_t cpu_ticks = 0;    // in user and kernel mode, in ticks of sysconf(_SC_CLK_TCK)
  uint64_t begin_ticks = 0;  // after the machine's start
};

// Returns nullopt if the text is not such a file's. Its second field, the name, may be
// anything.
std::optional<ThreadStat> parse_thread_stat_untrusted(std::string_view text);

// "running or ready", "sleeps", "waits for a disk or the like", ...
std::string_view thread_state_text(char state);

// Reads the file of one thread at a time, and no more than a kilobyte of it.
class ThreadWatch {
 public:
  // `pid_namespace`: the inode of our own, whose numbers /proc has; 0: not known, nothing
  // is read. `first_namespace`: the inode of the machine's first one. Shares are of the
  // last `window_ns` at most.
  ThreadWatch(uint32_t pid_namespace, uint32_t first_namespace, int64_t window_ns,
              std::string proc = "/proc")
      : pid_namespace_(pid_namespace == first_namespace ? 0 : pid_namespace),
        can_read_(pid_namespace != 0),
        window_ns_(window_ns),
        proc_(std::move(proc)) {}

  // Returns what is known of the thread at `now_ns`, a monotonic time. The file is read
  // if the thread is another one than the last time, or kEveryNs have passed since.
  // `pid_namespace`: an inode; 0: the first one.
  const LiveCpu& poll(uint32_t pid, uint32_t tid, uint32_t pid_namespace, int64_t now_ns);

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
  // The thread that was read last.
  uint32_t pid_ = 0, tid_ = 0;
  uint64_t begin_ticks_ = 0;
  int64_t polled_ns_ = 0;
  std::deque<Sample> samples_;
  LiveCpu cpu_;
};

}  // namespace arctrace::reader
