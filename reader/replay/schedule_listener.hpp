// What the replay tells of who had a CPU, and why not.
#pragma once

#include <cstdint>

#include "reader/replay/call_tree.hpp"
#include "reader/replay/cpu_time.hpp"
#include "reader/trace/record.hpp"

namespace arctrace::reader {

// Who let a blocked thread go on.
struct Waker {
  ThreadIndex thread = kNoIndex;  // that ran; kNoIndex: not known
  NodeIndex node = kNoNode;       // its innermost shown frame, if it is replayed
  bool interrupt = false;         // not the thread did it, but an interrupt of its CPU
};

// A stretch of a thread's time in one state, cut at the time range.
struct StateInfo {
  ThreadIndex thread = kNoIndex;
  RunState state = RunState::kRunning;
  bool preempted = false;   // of kReady: it left its CPU so; else it was woken
  uint32_t task_state = 0;  // of kBlocked: the kernel's TASK_* bits
  int64_t start_ns = 0, stop_ns = 0;
  NodeIndex node = kNoNode;  // its innermost shown frame when the stretch began
  Waker waker;               // of kBlocked: who ended it
};

class ScheduleListener {
 public:
  virtual ~ScheduleListener() = default;

  // In order of their ends; those of one thread one behind the other.
  virtual void state_ended(const StateInfo& state) = 0;
};

}  // namespace arctrace::reader
