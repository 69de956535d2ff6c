// Publishes the calls of a thread that wait to be reported (call_filter.hpp), in a record
// of class definitions that the thread changes in place. Readers take these calls for
// open if the thread never reports them: a process that is killed keeps its longest call.
#pragma once

#include <cstdint>

#include "src/writer/thread_state.hpp"

namespace arctrace {

// Publishes the open frame with index `at`, which waits until it has lasted `ticks_min`,
// if there is room for it: only the outermost frames that wait have room. REQUIRES: the
// thread is attached, the writer call is its outermost one, and published frames further
// in have been taken back.
void publish_waiting_call(ThreadState& state, uint32_t at, uint64_t ticks_min);

// Takes back the published frames that have been left or reported. Only for the outermost
// writer call.
void take_back_published_calls(ThreadState& state);

}  // namespace arctrace
