// What the replay reports about which threads had a CPU, and why others had none.
#pragma once

#include <cstdint>

#include "reader/replay/call_tree.hpp"
#include "reader/replay/cpu_time.hpp"
#include "reader/trace/kernel_gaps.hpp"
#include "reader/trace/record.hpp"

namespace arctrace::reader {

// What woke a blocked thread.
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
  // Its innermost shown frame when the stretch began. Of a running thread that it had run
  // before the time range is not always known.
  NodeIndex node = kNoNode;
  Waker waker;  // if kBlocked: what ended the stretch; after the range, without frames
};

// A part of a stretch, which a thread spent in one path.
struct PathTime {
  ThreadIndex thread = kNoIndex;
  RunState state = RunState::kRunning;
  NodeIndex node = kNoNode;
  int64_t start_ns = 0, stop_ns = 0;
  uint32_t coroutine = 0;  // on whose stack
};

// A thread made another one.
struct ThreadMade {
  ThreadIndex parent = kNoIndex;
  ThreadIndex child = kNoIndex;
  int64_t time_ns = 0;
  // By vfork: what the child does before it executes a program, the parent's stack has.
  bool runs_in_parent = false;
};

class ScheduleListener {
 public:
  virtual ~ScheduleListener() = default;

  // Stretches come in order of their ends; those of one thread follow one another.
  virtual void state_ended(const StateInfo& state) = 0;

  // All time of all threads; that of one thread in its order. A stretch's parts come
  // before its end, and what a thread did up to the moment at which it wakes or makes
  // another one comes before that is reported.
  virtual void time_passed(const PathTime& /*time*/) {}

  virtual void thread_made(const ThreadMade& /*made*/) {}
};

}  // namespace arctrace::reader
