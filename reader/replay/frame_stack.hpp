// One thread's open frames, the time that is charged to them, and the state that all
// threads of a replay share.
#pragma once

#include <absl/container/flat_hash_map.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "reader/replay/call_tree.hpp"
#include "reader/replay/functions.hpp"
#include "reader/replay/hook_costs.hpp"
#include "reader/replay/listener.hpp"
#include "reader/replay/resolver.hpp"
#include "reader/trace/findings.hpp"
#include "reader/trace/session.hpp"

namespace arctrace::reader {

// The state that the stacks of all threads share during a replay.

// Sums over all replayed threads, shown or not, in the filter's time range.
struct ReplayTotals {
  uint64_t orphans = 0;  // exits that match no frame
  uint64_t resyncs = 0;  // STACK records that changed the known stack
  // The numbers of frames by what was unusual about them.
  uint64_t unwound = 0, exit_lost = 0, entry_lost = 0, entered_before = 0, inherited = 0,
           guessed = 0, open = 0;
};

// A time in which functions were switched off, or some threads were not recorded.
struct OffStretch {
  int64_t from_ns;
  int64_t to_ns;  // INT64_MAX: it lasts
  // The record filter: this stretch is of the threads that it excludes. Empty: it is of
  // all threads.
  std::string filter;
};

struct ReplayState {
  ReplayState(const Definitions& all_definitions, Symbolizer* symbolizer,
              const ReplayFilter& shown, ReportClock report_clock,
              ReplayListener* replay_listener, ScheduleListener* schedule_listener,
              size_t max_findings)
      : definitions(all_definitions),
        resolver(all_definitions, symbolizer),
        kernel_functions(resolver.mutable_functions()),
        made_up(resolver.mutable_functions()),
        fork_functions(resolver.functions()),
        filter(shown),
        matcher(filter, resolver.functions()),
        clock(report_clock),
        has_dispatches(all_definitions.has_dispatches()),
        listener(replay_listener),
        schedule(schedule_listener),
        findings(max_findings) {}

  const Definitions& definitions;
  FunctionResolver resolver;
  KernelFunctions kernel_functions;
  MadeUpFunctions made_up;
  ForkFunctions fork_functions;
  const ReplayFilter filter;
  FunctionMatcher matcher;
  const ReportClock clock;
  bool has_dispatches;         // the kernel's records say when threads had a CPU
  ReplayListener* listener;    // or nullptr
  ScheduleListener* schedule;  // or nullptr
  CallTree tree;
  HookCosts costs{{}};
  bool is_corrected = false;  // the costs are taken off all times
  FindingLog findings;
  ReplayTotals totals;
  ReplayTotals outside;         // totals of times outside the filter's range
  std::vector<OffStretch> off;  // up to the last applied record, in order of time
  const ClockMap* ticks = nullptr;
  bool is_overwritten = false;  // a thread's missing blocks were overwritten
  // As wait() reports them, of the processes of which the kernel recorded it.
  absl::flat_hash_map<ProcessIndex, int32_t> exit_statuses;
};

// One thread's open frames, and the time that is charged to them. The rule of time:
// before anything changes, the time since the last change is charged to the innermost
// frame. A thread's time runs from its first record to its end, or to the end of the
// recording; time that goes back counts as standing still.
//
// Frames of the kernel stand above the thread's own frames and do not count for depth().
//
// A thread that runs coroutines has a stack for each. All comments here are about the
// frames of the stack on which the thread runs at present. The time of the others stands
// still.
class FrameStack {
 public:
  struct Frame {
    uint64_t key;
    int64_t start_ns;
    uint64_t self_ns;         // its own time, and that of frames in it that are not shown
    CpuTime cpu;              // the parts of self_ns by state
    uint64_t wall_before;     // the stack's time when the frame was entered
    CpuTime before;           // the parts of it
    uint64_t overhead_ps;     // what recording took of self_ns
    uint64_t removed_before;  // the stack's removed_ when the frame was entered
    uint64_t token;           // the listener's, for this frame
    uint64_t width;  // frames that it stands for: 1; 0 for a frame of the kernel's; more
                     // than 1 only for kUnknownFunction
    NodeIndex node;  // of the nearest shown frame, which may be this one
    uint32_t shown;  // the index of that frame
    FunctionId function;
    uint32_t depth;        // shown frames up to here
    uint32_t gaps_before;  // the thread's gaps_ when the frame was entered
    uint16_t flags;        // enum FrameFlag
    bool only;             // in a call that filter.only matches
    bool except;           // in a call that filter.except matches
    bool is_own_work;  // what the tracer does in the thread, which is not the program's
  };

  // `state` must outlive this object.
  FrameStack(ReplayState& state, ThreadIndex thread);

  // ---- Time ----

  bool has_begun() const { return has_begun_; }
  void begin(int64_t time_ns);
  // Charges the time up to `time_ns`, during which the thread was in `state`.
  void advance(int64_t time_ns, RunState state);
  // Charges a time in which records are missing to a call of `function` in the innermost
  // frame, which the listener does not see. A gap that goes on there is one call.
  void advance_gap(int64_t time_ns, RunState state, FunctionId function);
  // Notes that records are missing here: frames that are open now and later are flagged
  // kFrameAcrossGap.
  void note_gap() { ++gaps_; }
  // The same for the time up to `time_ns`, if a part of it is in the time range.
  void note_gap_until(int64_t time_ns) {
    if (clip(time_ns) > clip(now_)) note_gap();
  }
  // Skips the time up to `time_ns`, which is not the thread's. A CPU's `Interrupt` thread
  // has such times, when the CPU serves none.
  void skip(int64_t time_ns);
  // Sets the time that the listener gets for changes, if it is later than now: a frame
  // that was left in a gap is closed by a later record.
  void set_record_time(int64_t time_ns) { record_ns_ = time_ns; }
  // Counts that the thread leaves its CPU now.
  void count_switch();
  // Counts that an interrupt comes upon the thread now.
  void count_interrupt();
  int64_t now_ns() const { return now_; }
  // Returns `time_ns`, or the end of the time range that is next to it.
  int64_t clip(int64_t time_ns) const { return std::clamp(time_ns, earliest_, latest_); }
  int64_t start_ns() const { return clip(first_ns_); }
  int64_t stop_ns() const { return clip(now_); }
  // Whether now is inside the time range; whether the range has begun.
  bool in_range() const { return phase_ == Phase::kInside; }
  bool was_in_range() const { return phase_ != Phase::kBefore; }

  // ---- Frames ----

  // The number of the thread's own open frames, which STACK calls depth.
  uint64_t depth() const { return depth_; }
  // All open frames; the first entry is the thread itself.
  std::span<const Frame> frames() const { return frames_; }
  const Frame& top() const { return frames_.back(); }
  NodeIndex root() const { return frames_.front().node; }
  // Whether one of the thread's own frames has this key.
  bool is_open(uint64_t key);

  // The functions that change the thread's own frames REQUIRE that no frame of the
  // kernel's is open.
  void push(uint64_t key, FunctionId function, uint16_t flags, uint64_t width = 1);
  // These apply an ENTER, and an EXIT of the innermost frame: they also charge what
  // recording them took.
  void enter(uint64_t key, FunctionId function);
  void exit();
  // Charges what recording an ARGUMENTS or RESULT of the innermost frame took.
  void charge_args_cost();
  // Leaves the innermost `count` frames, or as many as there are.
  void leave(uint64_t count, uint16_t flags);
  // Puts a frame of `function`, which is left now, around all that the thread did outside
  // of frames so far.
  void adopt(FunctionId function);

  // vfork lends the stack to the child, and gets it back: frames that the child left are
  // open again. vfork_end returns how many open frames the child abandoned. Calls nest.
  void vfork_begin();
  uint64_t vfork_end();
  bool in_vfork() const { return !vforks_.empty(); }
  void forget_vforks() { vforks_.clear(); }

  // Switches to the stack of this coroutine, or to the thread's own stack, 0. A
  // coroutine's stack begins with a made-up frame of `function`, like those of
  // push_part(). REQUIRES: no frame of the kernel's is open.
  void switch_stack(uint32_t coroutine, FunctionId function);
  uint32_t coroutine() const { return coroutine_; }
  // The number of open frames on the stacks on which the thread does not run at present.
  uint64_t suspended_frames() const;

  // Adds frames that a fork child has of its parent, which its writer does not know: they
  // stand below the thread's own frames and do not count for depth(). `frames` are the
  // parent's, outermost first; `flags` are of enum FrameFlag. REQUIRES: the stack is
  // empty.
  struct KeyAndFunction {
    uint64_t key;
    FunctionId function;
  };
  void inherit(std::span<const KeyAndFunction> frames, uint16_t flags);
  uint32_t inherited() const { return inherited_; }
  // Pushes a made-up frame that stands for a part of the process' lifetime, above all
  // frames. It does not count for depth(), leaving a frame below it ends it, too, and the
  // listener, which gets calls, is told only its end. leave_part() REQUIRES that it is
  // the innermost frame.
  // `is_again`: the part goes on, and is not counted once more.
  void push_part(FunctionId function, bool is_again = false) {
    push(0, function, is_again ? kFramePart | kFrameResumed : kFramePart, 0);
  }
  static bool is_part(const Frame& frame) { return (frame.flags & kFramePart) != 0; }
  bool in_part() const {
    return is_part(frames_.back()) && (coroutine_ == 0 || frames_.size() > 2);
  }
  void leave_part() { pop(0); }
  // Leaves the innermost inherited frame with this key, and those inside it, flagged.
  // Returns false if there is none. REQUIRES: depth() is 0, and no frame of the kernel's
  // is open.
  bool leave_inherited(uint64_t key);

  uint32_t kernel_frames() const { return kernel_frames_; }
  void push_kernel(uint64_t key, FunctionId function, uint16_t flags);
  // REQUIRES: at least `count` frames of the kernel's are open.
  void leave_kernel(uint32_t count, uint16_t flags);

  // ---- The rest ----

  // The marks of the innermost frame, or of the thread, for changing them.
  NodeMarks& mark_top() { return state_.tree.mark(frames_.back().node); }
  NodeMarks& mark_root() { return state_.tree.mark(root()); }
  void point(PointInfo::Kind kind, const Record& record, FunctionId function);
  // Reports the args or the retval of the innermost frame.
  void args(const Record& record);
  // Reports what the kernel returned from the system call whose frame is the innermost
  // one.
  void syscall_result(int64_t result);

  // Closes the open frames, and sums up the tree. To be called once, last.
  void finish();

 private:
  // A private flag: this frame's call is counted, and was reported to the listener.
  static constexpr uint16_t kFrameCounted = 1 << 15;
  // A private flag: push_part() has pushed it.
  static constexpr uint16_t kFramePart = 1 << 14;

  // The state from which the stack is restored as it was at VFORK_BEGIN.
  struct VforkPoint {
    uint64_t depth;
    uint64_t lowest;             // the depth that the child went down to
    std::vector<Frame> removed;  // from depth down to lowest
  };

  // The state that switch_stack() exchanges.
  struct Stack {
    std::vector<Frame> frames = {Frame{}};  // the first entry is unused
    uint64_t wall = 0;
    CpuTime cpu;
    uint64_t removed = 0;
    uint64_t depth = 0;
    uint32_t inherited = 0;
    std::vector<VforkPoint> vforks;
    uint64_t keep_depth = 0;
    bool has_open_keys = false;
    absl::flat_hash_map<uint64_t, uint64_t> open_keys;
  };

  enum class Phase : uint8_t { kBefore, kInside, kAfter };  // of the time range

  int64_t event_ns() const { return clip(std::max(now_, record_ns_)); }
  void charge(const CpuTime& cpu);
  const RecordCost& cost_of(uint64_t key, FunctionId function) const;
  void charge_cost(const Frame& frame, uint64_t ps);
  void charge_call_cost(const Frame& frame, uint64_t ps);
  uint64_t removed_from(const Frame& frame) const;
  void report_time(int64_t until_ns, RunState state, NodeIndex node) const;
  void change_phase();
  void count_open();
  void close_cut();
  void exchange(Stack& stack);
  // Calls visit() for each of the thread's stacks, as if it ran there.
  template <class Visit>
  void on_each_stack(const Visit& visit);
  void close_stack();
  void count(Frame& frame);
  void enter_top();
  bool decide_shown(const Frame& parent, Frame& frame);
  void pop(uint16_t flags);
  void report_closed(const Frame& frame, uint16_t flags, bool shown) const;
  void fold(const Frame& frame);
  void mark_frame(const Frame& frame, uint16_t flags);
  // What the listener gets of a frame while it is open, and once it is closed.
  FrameInfo opened_info_of(const Frame& frame, uint16_t flags) const;
  FrameInfo info_of(const Frame& frame, uint16_t flags) const;

  ReplayState& state_;
  const ThreadIndex thread_;
  const int64_t earliest_, latest_;  // the time range's ends, in 63 bits
  const bool is_patched_;            // functions without a compiled-in hook were patched
  const bool has_hook_kinds_;        // modules of the process have a Module::hook_kind
  const bool is_of_interrupts_;      // it is a CPU's `Interrupt` thread
  bool has_begun_ = false;
  Phase phase_;
  int64_t next_phase_ns_;
  int64_t first_ns_ = 0;
  int64_t now_ = 0;
  int64_t record_ns_ = INT64_MIN;  // the applied record's time, if it is later than now_
  NodeIndex gap_ = kNoNode;        // the node of the last time without records
  int64_t gap_stop_ns_ = 0;        // and its end
  uint32_t gaps_ = 0;              // counts note_gap()
  uint64_t wall_ = 0;              // the sum of what was charged on this stack
  CpuTime cpu_;                    // the parts of it
  uint64_t removed_ = 0;           // of it, from calls that were closed, as corrected
  uint64_t depth_ = 0;             // sum of the widths of frames_[1...]
  std::vector<Frame> frames_;      // [0]: the thread itself
  uint32_t kernel_frames_ = 0;     // the last entries of frames_
  uint32_t inherited_ = 0;         // the first entries after the thread itself
  std::vector<VforkPoint> vforks_;
  // Frames up to this depth were open at a vfork: they may go on after they were left,
  // and are shown however short they are.
  uint64_t keep_depth_ = 0;
  // How often a key is on the stack; counted from the first time that is_open() needs it.
  bool has_open_keys_ = false;
  absl::flat_hash_map<uint64_t, uint64_t> open_keys_;
  uint32_t coroutine_ = 0;               // the one whose stack this is
  std::map<uint32_t, Stack> suspended_;  // the thread's other stacks
};

}  // namespace arctrace::reader
