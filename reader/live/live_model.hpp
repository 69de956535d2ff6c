// What a screen shows of a live session: the sums of the last seconds by function or by
// path, each with its history, and what each thread has open. It knows no terminal.
#pragma once

#include <absl/container/flat_hash_map.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "reader/live/live_reader.hpp"
#include "reader/live/thread_watch.hpp"
#include "reader/trace/buffer_state.hpp"

namespace arctrace::reader {

enum class LiveSort : uint8_t { kSelf, kCpu, kTotal, kCalls, kName };
enum class LiveTable : uint8_t { kFunctions, kPaths };

// Sums of a function, or of a path, in some time.
struct LiveSums {
  uint64_t calls = 0, self_ns = 0, total_ns = 0;
  uint64_t cpu_ns = 0;  // the part of self_ns on a CPU; 0 without the kernel's records
  LiveSums& operator+=(const LiveSums& other);
};

struct LiveRow {
  std::string name;               // escaped
  LiveSums sums;                  // of the window
  std::vector<uint64_t> history;  // self_ns of each tick, the newest last
};

struct LiveFrameRow {
  std::string name;  // escaped
  int64_t for_ns;    // how long it has been open
};

struct LiveThreadRow {
  std::string title;  // escaped
  // Its numbers in a PID namespace, which is named by its inode; 0: the first one.
  uint32_t pid = 0, tid = 0, pid_namespace = 0;
  LiveCpu cpu;                       // by the kernel's records, or set_cpu()
  std::vector<LiveFrameRow> frames;  // innermost first
};

// The session's counters, and the rates between the last two ticks.
struct LiveCounters {
  uint64_t records = 0, lost = 0;
  double records_per_second = 0, lost_per_second = 0;
  uint64_t blocks_used = 0, blocks = 0;
  uint64_t writers = 0;
  uint64_t on_cpu = 0;  // threads, by the kernel's records
};

// What is left out at present on purpose. All texts are escaped, and empty if nothing is.
struct LiveLeftOut {
  std::string classes;                     // "marks, kernel"
  bool is_all = false;                     // all classes are off
  std::vector<std::string> own_filters;    // with which programs were started: "-t 1ms"
  std::string live_filter;                 // set by ctl: "-N mem_*"
  std::vector<std::string> record_filter;  // entries, as SPEC.md FLT-2 has them
};

// A mark that a program set on the session's time line (arctrace_mark).
struct LiveMark {
  std::string text;  // escaped
  int64_t time_ns;
};

class LiveModel : public LiveTick {
 public:
  static constexpr size_t kTicksKept = 20;
  static constexpr size_t kMarksKept = 8;
  // Bounds of a tick, so that no program makes its watcher grow. The rows with the most
  // time are kept, half of them by self time, half by total; names are cut to this many
  // bytes; and deep stacks to their innermost frames.
  static constexpr size_t kRowsKept = 2'000, kNameKept = 1'000, kFramesKept = 200;

  // Sums are of the ticks that make up the last `window_ns`. `full_names`: functions have
  // their whole names (ShownNames).
  explicit LiveModel(int64_t window_ns, bool full_names = false)
      : window_ns_(window_ns), full_names_(full_names) {}

  void begin(const Trace& trace, Replay& replay) override;
  void after(const Record& record) override;
  void end(const Trace& trace, Replay& replay, int64_t from_ns, int64_t until_ns,
           const std::vector<LiveThread>& threads) override;
  // Sets the state of the buffer at the tick's end.
  void set_buffer(const BufferState& buffer, uint64_t blocks);

  // Sets what is known of the row's thread from another source, until the next tick.
  void set_cpu(size_t row, const LiveCpu& cpu) { threads_[row].cpu = cpu; }

  // While the model is paused, what it shows stays as it is.
  void set_paused(bool is_paused) { is_paused_ = is_paused; }
  bool is_paused() const { return is_paused_; }

  // The rows whose name contains `filter`, whatever the case of letters. `through`: only
  // paths with this function; empty: all.
  std::vector<LiveRow> rows(LiveTable table, LiveSort sort, std::string_view filter,
                            std::string_view through = {}) const;
  const std::vector<LiveThreadRow>& threads() const { return threads_; }
  // Whether the kernel's records tell time on the CPU from time off it.
  bool has_cpu() const { return has_cpu_; }
  const LiveCounters& counters() const { return counters_; }
  const LiveLeftOut& left_out() const { return left_out_; }
  // The newest marks, the last one last; how many were seen; and the present time.
  const std::deque<LiveMark>& marks() const { return marks_; }
  uint64_t mark_count() const { return mark_count_; }
  int64_t now_ns() const { return now_ns_; }
  // The length of time that the window's sums cover.
  int64_t window_ns() const;

 private:
  using Table = absl::flat_hash_map<std::string, LiveSums>;
  // The times of a thread in a tick.
  struct ThreadTimes {
    uint64_t wall_ns, cpu_ns, ready_ns, unknown_ns;
  };
  struct Tick {
    int64_t duration_ns = 0;
    Table functions, paths;
    absl::flat_hash_map<uint32_t, ThreadTimes> threads;  // by writer
  };

  void add_marks();
  void add_rows(Replay& replay, Tick& tick);
  void add_times(const Replay& replay, const std::vector<LiveThread>& threads,
                 Tick& tick);
  LiveCpu cpu_of(uint32_t writer, const StateInfo& state, int64_t until_ns) const;
  size_t window_begin() const;
  void add_threads(Replay& replay, int64_t until_ns,
                   const std::vector<LiveThread>& threads);

  const int64_t window_ns_;
  const bool full_names_;
  bool is_paused_ = false;
  const ClockMap* clock_ = nullptr;  // of the tick that is read
  std::deque<LiveMark> marks_;
  std::vector<LiveMark> new_marks_;  // of the tick, or since the pause began: the newest
  uint64_t mark_count_ = 0, new_mark_count_ = 0;
  int64_t now_ns_ = 0;
  LiveLeftOut left_out_;
  std::deque<Tick> ticks_;
  std::vector<LiveThreadRow> threads_;
  LiveCounters counters_;
  bool has_cpu_ = false;
  bool has_ready_ = false;    // the kernel's records have wake-ups
  int64_t last_tick_ns_ = 0;  // how long the last tick was
  bool has_counters_ = false;
};

}  // namespace arctrace::reader
