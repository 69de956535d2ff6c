// The call filter decides which calls are recorded: only the functions that -F matches
// and what they call, or all but those that -N matches; down to a depth; from a duration
// on.
//
// Calls that are filtered out are kept among the thread's open frames all the same. So
// jumps over them are seen, and the filter of a function ends with it; only no record is
// written of them. With a minimum duration, a call waits at its entry. It is recorded
// when it has lasted long enough, or when something else is recorded inside it, and
// always before any later record of its thread, so that times never go backwards. If two
// calls wait, the outer one is the older.
#pragma once

#include <cstdint>

#include "src/base/shared_atomics.hpp"
#include "src/calls/call_args.hpp"
#include "src/hook_abi/shim_types.h"
#include "src/writer/definitions.hpp"
#include "src/writer/thread_state.hpp"
#include "src/writer/writer_call.hpp"

namespace arctrace::writer {

struct CallFilter {
  uint32_t is_active;       // once set, as long as the session
  uint32_t filter_in_only;  // nothing but functions that -F matched, and what they call
  uint32_t filter_in_only_at_start;  // applies where the live filter has no text
  uint32_t number;                   // of the live filter that is in force
  uint32_t depth_max;                // 0: any
  uint64_t ticks_min;                // 0: any
};

extern CallFilter call_filter;

inline bool filter_is_active() {
  return IpcAtomics::load_relaxed(call_filter.is_active) != 0;
}

// To be called once for a session, before the program's own threads record.
void set_call_filter(const arctrace_shim_filter& filter);

// Removes the filter, because the process leaves the session: all calls are recorded.
void reset_call_filter();

// Puts another filter of functions into force while threads record: any of them may be
// the first to notice it.
void set_live_filter(uint32_t number, bool filter_in_only);

// The filter's context of a function that is entered now. REQUIRES: the thread is
// attached, and no more frames are open than are kept.
__attribute__((always_inline)) inline FilterContext context_here(
    const ThreadLocal& local) {
  const ThreadState& state = *local.state;
  const FilterContext& around = state.open.depth == 0
                                    ? local.filter_outermost
                                    : state.filtered.frames[state.open.depth - 1].inside;
  const uint32_t number = IpcAtomics::load_relaxed(call_filter.number);
  return around.is_by(number) ? around : FilterContext::outermost(number);
}

// The filter's view of a function with these flags (enum arctrace_shim_call_flags) that
// is entered now. REQUIRES: the thread is attached.
__attribute__((always_inline)) inline FilteredFrame filtered_frame(
    const ThreadLocal& local, uint32_t flags, uint64_t ticks) {
  const auto has = [flags](arctrace_shim_call_flags flag) {
    return (flags & static_cast<uint32_t>(flag)) != 0;
  };
  FilteredFrame frame{ticks, {}, FilteredFrame::Reporting::kHidden, false, 0};
  ThreadState& state = *local.state;
  if (state.open.depth >= OpenFrames::kMax) {
    frame.inside.set_notrace();  // too deep to be saved
    if (state.filtered.reported_depth > state.open.depth)
      state.filtered.reported_depth = state.open.depth;
    return frame;
  }
  frame.args_end = static_cast<uint16_t>(state.filtered.args_begin(state.open.depth));
  FilterContext& inside = frame.inside;
  inside = context_here(local);
  if (has(ARCTRACE_SHIM_NOTRACE)) inside.set_notrace();
  if (inside.is_notrace()) return frame;
  if (has(ARCTRACE_SHIM_FILTERED_IN)) inside.set_filtered_in();
  const bool filter_in_only = IpcAtomics::load_relaxed(call_filter.filter_in_only) != 0;
  if ((filter_in_only && !inside.is_filtered_in()) || has(ARCTRACE_SHIM_HIDDEN)) {
    return frame;
  }
  if (call_filter.depth_max != 0 && inside.level() >= call_filter.depth_max) return frame;
  inside.count_level();
  frame.reporting = call_filter.ticks_min != 0 ? FilteredFrame::Reporting::kWaiting
                                               : FilteredFrame::Reporting::kReported;
  return frame;
}

// Whether a call of a function with these flags would be recorded that is entered in more
// open frames than are kept, as far as that is known.
bool may_report_deeper(const ThreadLocal& local, uint32_t flags);

// Saves the arguments of a frame that is about to be added and to wait, as long as there
// is space.
void keep_args(ThreadState& state, FilteredFrame& frame, const ArgsBody& body);

// Whether a frame need not be kept: it is not recorded, and nothing changes inside it.
__attribute__((always_inline)) inline bool is_without_effect(const ThreadLocal& local,
                                                             const FilteredFrame& frame) {
  return frame.reporting == FilteredFrame::Reporting::kHidden &&
         (local.state->open.depth >= OpenFrames::kMax ||
          frame.inside == context_here(local));
}

// Whether the exit of a frame is recorded that was open before the thread's first record
// here, as a fork child's are.
bool unknown_exit_is_reported(const ThreadLocal& local);

// To be called after each change of the open frames. Keeps what holds inside the
// innermost frame for fork children, whose frames are gone, and takes back published
// calls that are over.
void keep_filter_context(ThreadLocal& local);

// Records the waiting calls that have lasted long enough at `ticks`. REQUIRES: the filter
// is active.
void report_long_calls(Nesting nesting, ThreadState& state, uint64_t ticks);

// As report_long_calls(), for the calling thread outside of any call: its process is
// about to end.
void report_long_calls_at_end();

// Records all calls that wait, because the thread changes from the stack that they are on
// to another one. Only for the outermost writer call.
void report_all_calls(Nesting nesting, ThreadState& state);

// The calls of a thread that wait are published in a record of class definitions, which
// the thread changes in place. Readers take these calls for open if the thread never
// records them: a process that is killed keeps its longest call.

// Whether the thread has a record in which its calls that wait are published. Making one
// takes the slow path's space on the stack.
inline bool has_waiting_record(const ThreadState& state) {
  return state.published.body != nullptr &&
         state.published.generation == state.definitions.thread_generation;
}

// Publishes the open frame with index `at`, which waits until it has lasted `ticks_min`,
// if there is space: only the outermost frames that wait have it. REQUIRES: the thread is
// attached, the writer call is its outermost one, and published frames further in have
// been taken back.
void publish_waiting_call(ThreadState& state, uint32_t at, uint64_t ticks_min);

// Takes back the published frames that have been left or recorded. Only for the outermost
// writer call.
void take_back_published_calls(ThreadState& state);

// Frames that the program names itself (arctrace_name_key()), the API's scopes, are the
// writer's to judge by the filter of functions (SPEC.md FLT-1): the shim asks the filter
// for functions only (named_frame_filter.cpp).

// The flags (enum arctrace_shim_call_flags) that the filter of the command line has for a
// name, which ends with a zero byte.
using FlagsOfName = uint32_t(const char* name);

// From now on the names that are there, and those that are defined later, have the flags
// that `flags_of` returns, where there is no live filter. Null: none. To be called once
// for a session, before the program's own threads record.
void set_flags_of_names(FlagsOfName* flags_of);

// Asks that function for the flags of a name that has just been defined.
void judge_name(Definition& definition);

// The flags that the filter in force has for a frame with this key: 0 for a function's.
// Follows a live filter that has changed. REQUIRES: the session is joined.
uint32_t named_frame_flags(uint64_t key);

}  // namespace arctrace::writer
