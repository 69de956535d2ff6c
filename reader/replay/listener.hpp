// The calls that the replay makes, in order of time, to views that show more than sums:
// frames and points, and which threads had a CPU and why others had none.
#pragma once

#include <cstdint>

#include "reader/replay/call_tree.hpp"
#include "reader/replay/functions.hpp"
#include "reader/trace/event_fields.hpp"
#include "reader/trace/record.hpp"
#include "reader/trace/recorded_times.hpp"

namespace arctrace::reader {

// What is unusual about a frame, as bits.
enum FrameFlag : uint16_t {
  kFrameUnwound = 1 << 0,        // abandoned: longjmp, an exception, or a vfork child
  kFrameExitLost = 1 << 1,       // gone, no exit was recorded
  kFrameEntryLost = 1 << 2,      // no entry was recorded; it starts where it was seen
  kFrameEnteredBefore = 1 << 3,  // entered before tracing began
  kFrameInherited = 1 << 4,      // on the stack that fork copied
  kFrameOpen = 1 << 5,           // not returned when the trace ended
  kFrameResumed = 1 << 6,        // of a vfork parent, after its child left it, too
  kFrameCutStart = 1 << 7,       // started before the time range
  kFrameCutStop = 1 << 8,        // stopped after the time range
  kFrameGuessed = 1 << 9,        // inherited, if the parent forked where it seems to have
  // It was open before and after a time of which records of its thread are missing, so it
  // may be several calls.
  kFrameAcrossGap = 1 << 10,
};

// The flags of frames that are the rest of a call for which another frame stands: the
// forker's frame, or the one that a vfork child left. They are shown, and are no calls:
// no view and no export counts them.
inline constexpr uint16_t kFrameCountedElsewhere = kFrameInherited | kFrameResumed;
inline bool is_call(uint16_t flags) { return (flags & kFrameCountedElsewhere) == 0; }

// A shown frame. Times are cut at the time range of the filter.
struct FrameInfo {
  ThreadIndex thread;
  FunctionId function;
  uint32_t coroutine;  // on whose stack it is; 0: the thread's own
  uint32_t depth;   // the number of shown frames on that stack up to this one: 1 is the
                    // outermost
  uint32_t count;   // frames that it stands for; more than 1 only for kUnknownFunction
  uint16_t flags;   // enum FrameFlag
  int64_t time_ns;  // of the record that opens or closes it
  int64_t start_ns;
  int64_t stop_ns;  // once it is closed
  // Known once the frame is closed, on the report's clock: the time in the function
  // itself, and with all it called.
  uint64_t self_ns, duration_ns;
  CpuTime cpu;  // of the whole call, whatever the clock, if the kernel's records have it
  NodeIndex node;  // its node in the replay's tree
};

// Something that happened at one time in a thread, or in none (kNoIndex).
struct PointInfo {
  enum class Kind : uint8_t {
    kRecord,  // EVENT, INSTANT, COUNTER, TEXT, MARK, VFORK_BEGIN, VFORK_END, LOST,
              // COROUTINE, ENABLED, BLOCK_IO, BLOCK_IO_END
    kOrphan,  // EXIT or EXIT_NAMED that fits no frame
    kResync,  // STACK that differs from the stack that was known
  };
  Kind kind;
  ThreadIndex thread;
  FunctionId function;  // of an orphan EXIT_NAMED; else kUnknownFunction
  uint32_t depth;       // the number of shown frames around it
  int64_t time_ns;
  const Record* record;
};

// The args of a frame that is open, or its retval, before it is closed. A system call
// that failed has a RESULT record like that of a library call, made of its SYSCALL_END.
struct ArgsInfo {
  ThreadIndex thread;
  FunctionId function;
  uint64_t token;  // the listener's, of the frame
  int64_t time_ns;
  const Record* record;  // ARGUMENTS or RESULT
};

// A signal is delivered to a thread, whose next instruction is one of `function`. The
// frame that stands for the delivery is opened after this.
struct SignalInfo {
  ThreadIndex thread;
  FunctionId function;
  int64_t time_ns;
};

// Calls come in order of time, and on each of a thread's stacks they nest correctly.
class ReplayListener {
 public:
  virtual ~ReplayListener() = default;

  // Returns the `token` that frame_closed gets for this frame.
  virtual uint64_t frame_opened(const FrameInfo& frame) = 0;

  // Every opened frame is closed once. Frames that are open at the end of the trace are
  // closed when the replay is finished, with kFrameOpen. `shown` is false if the call was
  // shorter than the filter's minimum.
  virtual void frame_closed(const FrameInfo& frame, uint64_t token, bool shown) = 0;

  // Gets a closed frame around all that the thread did outside of frames so far. It
  // started with the thread (kFrameEnteredBefore), and was not opened before this call.
  virtual void frame_adopted(const FrameInfo& frame) = 0;

  virtual void point(const PointInfo& point) = 0;

  // A part of the process' lifetime has ended, such as "[loader]": a made-up frame that
  // is no call and has no depth. Calls may have been inside it.
  virtual void part_ended(const FrameInfo& /*part*/) {}

  virtual void args(const ArgsInfo& /*args*/) {}
  // The kernel returned no error from the system call whose open frame has this token.
  virtual void syscall_succeeded(uint64_t /*token*/) {}

  // Called only if the instruction is recorded.
  virtual void signal_came(const SignalInfo& /*signal*/) {}
};

// A listener that gets only those events of the API that a filter admits, and all other
// calls. The filter counts the events that it excludes, of the threads and times that are
// shown.
class EventFilterListener : public ReplayListener {
 public:
  // Both must outlive this object.
  EventFilterListener(ReplayListener& next, EventFilter& filter)
      : next_(next), filter_(filter) {}

  uint64_t frame_opened(const FrameInfo& frame) override {
    return next_.frame_opened(frame);
  }
  void frame_closed(const FrameInfo& frame, uint64_t token, bool shown) override {
    next_.frame_closed(frame, token, shown);
  }
  void frame_adopted(const FrameInfo& frame) override { next_.frame_adopted(frame); }
  void point(const PointInfo& point) override {
    if (filter_.admits(*point.record)) next_.point(point);
  }
  void part_ended(const FrameInfo& part) override { next_.part_ended(part); }
  void args(const ArgsInfo& args) override { next_.args(args); }
  void syscall_succeeded(uint64_t token) override { next_.syscall_succeeded(token); }
  void signal_came(const SignalInfo& signal) override { next_.signal_came(signal); }

 private:
  ReplayListener& next_;
  EventFilter& filter_;
};

// ---- Which threads had a CPU, and why others had none --------------------------------

// The thread or interrupt that woke a blocked thread.
struct Waker {
  ThreadIndex thread = kNoIndex;  // the one that ran then; kNoIndex: not known
  NodeIndex node = kNoNode;       // its innermost shown frame, if it is replayed
  bool interrupt = false;         // an interrupt of its CPU did it, not the thread
  uint32_t context = 0;           // ARCTRACE_WAKING_*
};

// A stretch of a thread's time in one state, cut at the time range.
struct StateInfo {
  ThreadIndex thread = kNoIndex;
  RunState state = RunState::kRunning;
  bool preempted = false;    // if kReady: it was when it left its CPU; else it was woken
  bool interrupted = false;  // and if so: it kept its CPU, which serves an interrupt
  uint32_t task_state = 0;   // if kBlocked: the kernel's TASK_* bits, ARCTRACE_SWITCH_IO
  uint32_t cpu = kCpuNotKnown;  // if kRunning, or interrupted: on which one
  int64_t start_ns = 0, stop_ns = 0;
  // Its innermost shown frame when the stretch began. The frame is not always known if
  // the thread ran and had begun to run before the time range.
  NodeIndex node = kNoNode;
  Waker waker;  // if kBlocked: what ended the stretch; after the range, without frames
};

// A part of a stretch that a thread spent on one path.
struct PathTime {
  ThreadIndex thread = kNoIndex;
  RunState state = RunState::kRunning;
  NodeIndex node = kNoNode;
  int64_t start_ns = 0, stop_ns = 0;
  uint32_t coroutine = 0;  // on whose stack
};

// A thread created another one.
struct ThreadMade {
  ThreadIndex parent = kNoIndex;
  ThreadIndex child = kNoIndex;
  int64_t time_ns = 0;
  // By vfork: until the child executes a program, its calls stand on the parent's stack.
  bool runs_in_parent = false;
};

class ScheduleListener {
 public:
  virtual ~ScheduleListener() = default;

  // Stretches come in the order of their ends; those of one thread follow one another.
  virtual void state_ended(const StateInfo& state) = 0;

  // Gets all time of all threads; the time of one thread in its order. A stretch's parts
  // come before its end, and a thread's time up to a wake-up or a creation of another
  // thread comes before that.
  virtual void time_passed(const PathTime& /*time*/) {}

  virtual void thread_made(const ThreadMade& /*made*/) {}
};

}  // namespace arctrace::reader
