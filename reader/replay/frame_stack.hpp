// One thread's open frames, and the time charged to them.
#pragma once

#include <absl/container/flat_hash_map.h>

#include <cstdint>
#include <span>
#include <vector>

#include "reader/replay/cpu_time.hpp"
#include "reader/replay/replay_state.hpp"

namespace arctrace::reader {

// The time rule: before anything changes, the time since the last change is charged to
// the innermost frame. A thread's time runs from its first record to its last one, or the
// kernel's last one about it; time that goes back counts as standing still.
//
// Frames of the kernel stand on top of the thread's own, which alone make up depth().
class FrameStack {
 public:
  struct Frame {
    uint64_t key;
    int64_t start_ns;
    uint64_t base_ns;  // its own, and that of frames in it that are not shown
    CpuTime cpu;       // of base_ns
    CpuTime before;    // the thread's when it was entered
    uint64_t token;    // the listener's
    uint64_t width;    // frames that it stands for: 1; 0 of the kernel's, and more than 1
                       // of kUnknownFunction only
    NodeIndex node;    // of the nearest shown frame, which may be itself
    uint32_t shown;    // the index of that frame
    FunctionId function;
    uint32_t depth;  // shown frames up to here
    uint16_t flags;
    bool only;    // in a call that filter.only matches
    bool except;  // in a call that filter.except matches
  };

  // `state` must outlive this object.
  FrameStack(ReplayState& state, ThreadIndex thread);

  // ---- Time ----

  bool has_begun() const { return has_begun_; }
  void begin(int64_t time_ns);
  // Charges the time up to `time_ns`, in which the thread did `did`.
  void advance(int64_t time_ns, RunState did);
  // It leaves its CPU now.
  void count_switch();
  int64_t now_ns() const { return now_; }
  // Cut at the time range.
  int64_t clip(int64_t time_ns) const;
  int64_t start_ns() const { return clip(first_ns_); }
  int64_t stop_ns() const { return clip(now_); }
  // Of the time range: is now, and had begun.
  bool in_range() const { return phase_ == Phase::kInside; }
  bool was_in_range() const { return phase_ != Phase::kBefore; }

  // ---- Frames ----

  // The thread's own open frames: what STACK calls depth.
  uint64_t depth() const { return depth_; }
  // [0]: the thread itself.
  std::span<const Frame> frames() const { return frames_; }
  const Frame& top() const { return frames_.back(); }
  NodeIndex root() const { return frames_.front().node; }
  // Whether an own frame has this key.
  bool is_open(uint64_t key);

  // REQUIRES of all that changes own frames: none of the kernel's is open.
  void push(uint64_t key, FunctionId function, uint16_t flags, uint64_t width = 1);
  // The innermost `count` frames are left, or as many as there are.
  void leave(uint64_t count, uint16_t flags);
  // All that was not in a frame so far was in this one, which is left now.
  void adopt(FunctionId function);

  // Where vfork lends the stack to the child, and gets it back: frames that the child
  // left are open again. Returns how many the child had left open. Ends nest.
  void vfork_begin();
  uint64_t vfork_end();
  bool in_vfork() const { return !vforks_.empty(); }
  void forget_vforks() { vforks_.clear(); }

  uint32_t kernel_frames() const { return kernel_frames_; }
  void push_kernel(uint64_t key, FunctionId function);
  // REQUIRES: at least as many are open.
  void leave_kernel(uint32_t count, uint16_t flags);

  // ---- The rest ----

  // Marks of the innermost frame, or of the thread, to be changed.
  NodeMarks& mark_top() { return state_.tree.mark(frames_.back().node); }
  NodeMarks& mark_root() { return state_.tree.mark(root()); }
  void point(PointInfo::Kind kind, const Record& record, FunctionId function);
  // Arguments or the result of the innermost frame.
  void values(const Record& record);

  // Closes what is open, sums up.
  void finish();

 private:
  // Not shown to others: this frame's call is counted and the listener knows it.
  static constexpr uint16_t kFrameCounted = 1 << 15;

  // The stack is put back to what it was at VFORK_BEGIN.
  struct VforkPoint {
    uint64_t depth;
    uint64_t lowest;             // depth that the child went down to
    std::vector<Frame> removed;  // from depth down to lowest
  };

  enum class Phase : uint8_t { kBefore, kInside, kAfter };  // of the time range

  void charge(const CpuTime& cpu);
  void change_phase();
  void count(Frame& frame);
  void push_frame(Frame frame);
  bool decide_shown(const Frame& parent, Frame& frame);
  void pop(uint16_t flags);
  void fold(const Frame& frame);
  void mark_frame(const Frame& frame, uint16_t flags);
  FrameInfo info_of(const Frame& frame, uint16_t flags) const;

  ReplayState& state_;
  const ThreadIndex thread_;
  bool has_begun_ = false;
  Phase phase_;
  int64_t next_phase_ns_;
  int64_t first_ns_ = 0;
  int64_t now_ = 0;
  CpuTime cpu_;                 // all that was charged
  uint64_t depth_ = 0;          // sum of the widths of frames_[1...]
  std::vector<Frame> frames_;   // [0]: the thread itself
  uint32_t kernel_frames_ = 0;  // the last ones of these
  std::vector<VforkPoint> vforks_;
  // Frames up to here were open at a vfork: they may go on after they were left, and are
  // shown however short they are.
  uint64_t keep_depth_ = 0;
  // How often a key is on the stack; kept from the first time that it is of use.
  bool has_open_keys_ = false;
  absl::flat_hash_map<uint64_t, uint64_t> open_keys_;
};

}  // namespace arctrace::reader
