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
#include "src/writer/thread_local.hpp"
#include "src/writer/writer_call.hpp"

namespace arctrace {

struct CallFilter {
  uint32_t is_active;       // once set, as long as the session
  uint32_t filter_in_only;  // nothing but functions that -F matched, and what they call
  uint32_t filter_in_only_at_start;  // the same where the live filter has no text
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

// All calls are recorded, as without a filter: the session is left.
void reset_call_filter();

// Puts another filter of functions into force while threads record: any of them may be
// the first to notice it.
void set_live_filter(uint32_t number, bool filter_in_only);

// The filter's view of a function with these flags (enum arctrace_shim_call_flags) that
// is entered now. REQUIRES: the thread is attached.
FilteredFrame filtered_frame(const ThreadLocal& local, uint32_t flags, uint64_t ticks);

// Whether a call of a function with these flags would be reported that is entered in more
// open frames than are kept, as far as that is known.
bool may_report_deeper(const ThreadLocal& local, uint32_t flags);

// Keeps the arguments of a frame that is about to be added and to wait, as long as there
// is room.
void keep_args(ThreadState& state, FilteredFrame& frame, const ArgsBody& body);

// Whether such a frame need not be kept: it is not reported, and nothing changes inside
// it.
bool is_without_effect(const ThreadLocal& local, const FilteredFrame& frame);

// Whether the exit of a frame is recorded that was open before the thread's first record
// here, as a fork child's are.
bool unknown_exit_is_reported(const ThreadLocal& local);

// To be called after each change of the open frames. Keeps what holds inside the
// innermost frame for fork children, whose frames are gone, and takes back published
// calls that were left.
void keep_filter_context(ThreadLocal& local);

// Reports the waiting calls that have lasted long enough at `ticks`. REQUIRES: the filter
// is active.
void report_long_calls(Nesting nesting, ThreadState& state, uint64_t ticks);

// The same for the calling thread, outside of any call: its process is about to end.
void report_long_calls_at_end();

// Reports all calls that wait: the thread leaves the stack that they are on. Only for the
// outermost writer call.
void report_all_calls(Nesting nesting, ThreadState& state);

}  // namespace arctrace
