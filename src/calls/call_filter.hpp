// Which calls are recorded, where not all are: only those of chosen functions and what
// they call, or all but those; to a depth; from a duration on.
//
// Calls that are left out stand among the thread's open frames all the same, so that
// jumps over them are seen and what holds inside them ends with them; readers are just
// not told of them. Where a duration is asked for, a call waits with its entry, and is
// told when it has lasted long enough, or when something else is recorded inside it:
// always before any later record of its thread, so that times never go backwards. Of two
// waiting calls the outer one is the older.
#pragma once

#include <cstdint>

#include "src/calls/call_args.hpp"
#include "src/hook_abi/shim_types.h"
#include "src/writer/thread_state.hpp"
#include "src/writer/writer.hpp"

namespace arctrace {

struct CallFilter {
  uint32_t is_active;    // once set, for good
  uint32_t only_chosen;  // nothing but functions marked CHOSEN, and what they call
  uint32_t round;        // of the choice that is in force
  uint32_t depth_max;    // 0: any
  uint64_t ticks_min;    // 0: any
};

extern CallFilter call_filter;

inline bool filter_is_active() {
  return IpcAtomics::load_relaxed(call_filter.is_active) != 0;
}

// To be called once, before the program's own threads record.
void set_call_filter(const arctrace_shim_filter& filter);

// Another choice of functions, while threads record: any of them may be the first to
// notice it.
void choose_live(uint32_t round, bool only_chosen);

// The filter's view of a function with these flags (enum arctrace_shim_call_flags) that
// is entered now. REQUIRES: the thread is attached.
FilteredFrame filtered_frame(const ThreadLocal& local, uint32_t flags, uint64_t ticks);

// Keeps the arguments of a frame that is about to be added and to wait, as long as there
// is room.
void keep_arguments(ThreadState& state, FilteredFrame& frame, const ValuesBody& body);

// Whether such a frame need not be kept: it is not told, and nothing changes inside it.
bool is_without_effect(const ThreadLocal& local, const FilteredFrame& frame);

// How many of the outermost `depth` open frames readers were told of.
uint32_t told_frames(const ThreadState& state, uint32_t depth);

inline bool frame_is_told(const ThreadState& state, uint32_t i) {
  return !filter_is_active() ||
         (i < ThreadState::kMaxFrames &&
          state.filtered[i].telling == FilteredFrame::Telling::kTold);
}

// Whether the exit of a frame is recorded that was open before the thread's first record
// here, as a fork child's are.
bool unknown_exit_is_told(const ThreadLocal& local);

// Keeps what holds inside the innermost frame for fork children: their frames are gone.
void note_filter_scope(ThreadLocal& local);

// Tells the waiting calls that have lasted long enough at `ticks`. REQUIRES: is_active.
void tell_long_calls(ScopeKind scope, ThreadState& state, uint64_t ticks);

}  // namespace arctrace
