// One thread's call stack, rebuilt from its records, and the time charged to it.
#pragma once

#include <absl/container/flat_hash_map.h>

#include <cstdint>
#include <string>
#include <vector>

#include "reader/replay/off_time.hpp"
#include "reader/replay/replay_state.hpp"

namespace arctrace::reader {

// The time rule: a record first charges the time since the thread's previous record to
// the innermost frame, then changes the stack. A thread's time runs from its first
// record to its last one; time that goes back counts as standing still.
// Time off the CPU is charged to the same frame, as part of that time.
//
// Missing records: an EXIT_NAMED whose key lies deeper pops to it, unless the writer told
// all its frames and so has looked itself; one on an empty stack was entered before
// tracing began and becomes the frame around all so far; one that is found nowhere
// changes nothing and is counted. STACK says what the stack is after a loss, and must
// agree with what is known without one.
class ThreadStack {
 public:
  // `state` must outlive this object. `fork_child`: the thread's first STACK is what
  // fork copied.
  ThreadStack(ReplayState& state, ThreadIndex thread, ProcessIndex process,
              bool fork_child);

  // The thread's next record, in the order it wrote them. Definitions and records of
  // the kernel writer are not part of the stack and are ignored.
  void apply(const Record& record);

  // What the kernel says of the thread, in order of time with its records: it is not on a
  // CPU any more (`ready`: it could have gone on), it may run again, it does.
  void left_cpu(int64_t time_ns, bool ready);
  void woken(int64_t time_ns);
  void got_cpu(int64_t time_ns);

  // A loss that only the collector knew of, at an unknown time.
  void add_residual_loss(uint64_t count);

  // After the last record: closes what is open, sums up.
  void finish();

  // False if nothing of the thread is in the filter's time range.
  bool in_report() const {
    return has_residual_loss_ || (phase_ != Phase::kBefore && has_records_);
  }
  NodeIndex root() const { return frames_.front().node; }
  // In the time range.
  int64_t start_ns() const { return clip(first_ns_); }
  int64_t stop_ns() const { return clip(now_); }
  // Open frames: what STACK calls depth.
  uint64_t depth() const { return depth_; }

 private:
  // Not shown to others: this frame's call is counted and the listener knows it.
  static constexpr uint16_t kFrameCounted = 1 << 15;

  struct Frame {
    uint64_t key;
    int64_t start_ns;
    uint64_t base_ns;  // its own, and that of frames in it that are not shown
    OffTime off;       // of base_ns
    uint64_t token;    // the listener's
    uint64_t width;    // frames that it stands for; more than 1 of kUnknownFunction only
    NodeIndex node;    // of the nearest shown frame, which may be itself
    uint32_t shown;    // the index of that frame
    FunctionId function;
    uint32_t depth;  // shown frames up to here
    uint16_t flags;
    bool only;    // in a call that filter.only matches
    bool except;  // in a call that filter.except matches
  };

  // The stack is put back to what it was at VFORK_BEGIN.
  struct VforkPoint {
    uint64_t depth;
    uint64_t lowest;             // depth that the child went down to
    std::vector<Frame> removed;  // from depth down to lowest
  };

  enum class Phase : uint8_t { kBefore, kInside, kAfter };  // of the time range

  int64_t clip(int64_t time_ns) const;
  void begin(const Record& record);
  void advance(int64_t time_ns);
  void charge_off_time(const Frame& top, uint64_t passed);
  void change_phase();
  void count(Frame& frame);

  void enter(uint64_t key);
  void exit(const Record& record);
  void exit_named(const Record& record);
  void unwind(const Record& record);
  void vfork_begin();
  void vfork_end(const Record& record);
  void stack(const Record& record);
  void lost(const Record& record);
  void values(const Record& record);
  void point(PointInfo::Kind kind, const Record& record,
             FunctionId function = kUnknownFunction);
  void orphan(const Record& record, FunctionId function);
  void adopt(const Record& record);

  void push(uint64_t key, FunctionId function, uint16_t flags, uint64_t width = 1);
  void push_frame(Frame frame);
  bool decide_shown(const Frame& parent, Frame& frame);
  void leave(uint64_t count, uint16_t flags);
  void pop(uint16_t flags);
  void fold(const Frame& frame);
  void mark_frame(const Frame& frame, uint16_t flags);
  FrameInfo info_of(const Frame& frame, uint16_t flags) const;
  bool is_open(uint64_t key);
  void add_finding(Rule rule, const Record& record, const std::string& what);

  ReplayState& state_;
  const ThreadIndex thread_;
  const ProcessIndex process_;
  const bool fork_child_;
  bool has_records_ = false;
  bool has_residual_loss_ = false;
  bool has_calls_ = false;  // had a record other than STACK and LOST
  bool broken_ = true;      // records are missing: the stack is unknown until STACK
  bool all_told_ = false;   // the writer keeps all frames that are open, as STACK said
  Phase phase_;
  int64_t next_phase_ns_;
  int64_t first_ns_ = 0;
  int64_t now_ = 0;
  static constexpr int64_t kNever = INT64_MIN;
  int64_t off_since_ = kNever;    // on a CPU, as far as is known
  int64_t ready_since_ = kNever;  // and since then could have run
  OffTime off_;                   // since the last record
  uint64_t depth_ = 0;            // sum of the widths of frames_[1...]
  std::vector<Frame> frames_;     // [0]: the thread itself
  std::vector<VforkPoint> vforks_;
  // Frames up to here were open at a vfork: they may go on after they were left, and are
  // shown however short they are.
  uint64_t keep_depth_ = 0;
  // How often a key is on the stack; kept from the first time that it is of use.
  bool has_open_keys_ = false;
  absl::flat_hash_map<uint64_t, uint64_t> open_keys_;
  uint32_t adopted_ = 0;
};

}  // namespace arctrace::reader
