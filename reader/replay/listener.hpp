// What the replay reports, in order of time, to views that show more than sums.
#pragma once

#include <cstdint>

#include "reader/replay/call_tree.hpp"
#include "reader/replay/cpu_time.hpp"
#include "reader/replay/functions.hpp"
#include "reader/trace/record.hpp"

namespace arctrace::reader {

// What is unusual about a frame: bits.
enum FrameFlag : uint16_t {
  kFrameUnwound = 1 << 0,        // left by longjmp, an exception, or in a vfork child
  kFrameExitLost = 1 << 1,       // gone, no exit was recorded
  kFrameEntryLost = 1 << 2,      // no entry was recorded; it starts where it was seen
  kFrameEnteredBefore = 1 << 3,  // entered before tracing began
  kFrameInherited = 1 << 4,      // on the stack that fork copied
  kFrameOpen = 1 << 5,           // not left when the trace ended
  kFrameResumed = 1 << 6,        // of a vfork parent, after its child had left it too
  kFrameCutStart = 1 << 7,       // started before the time range
  kFrameCutStop = 1 << 8,        // stopped after the time range
  kFrameGuessed = 1 << 9,        // inherited, if the parent forked where it seems to have
};

// Of frames that are the rest of a call which another frame stands for: the forker's
// frame, or that which a vfork child left. They are shown, and are no calls: no view and
// no export counts them.
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
  // Once it is closed, on the report's clock: in the function itself, and with all it
  // called.
  uint64_t self_ns, duration_ns;
  CpuTime cpu;  // of the whole call, whatever the clock, if the kernel's records have it
  NodeIndex node;  // its node in the replay's tree
};

// Something that happened at one moment in a thread, or in none (kNoIndex).
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

// The args of a shown frame, after it is opened, or its retval, before it is closed.
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

// Calls come in order of time, and on each of a thread's stacks correctly nested.
class ReplayListener {
 public:
  virtual ~ReplayListener() = default;

  // Returns the `token` that frame_closed is to get.
  virtual uint64_t frame_opened(const FrameInfo& frame) = 0;

  // Every opened frame is closed once; frames that are open at the end of the trace when
  // the replay is finished, with kFrameOpen. `shown` is false if the call was shorter
  // than the filter's minimum.
  virtual void frame_closed(const FrameInfo& frame, uint64_t token, bool shown) = 0;

  // A closed frame around all that the thread did outside of frames so far. It started
  // with the thread (kFrameEnteredBefore), and was not opened before this call.
  virtual void frame_adopted(const FrameInfo& frame) = 0;

  virtual void point(const PointInfo& point) = 0;

  virtual void args(const ArgsInfo& /*args*/) {}

  // Only where the instruction is recorded.
  virtual void signal_came(const SignalInfo& /*signal*/) {}
};

}  // namespace arctrace::reader
