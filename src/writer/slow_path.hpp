// The slow path of every record that does not just go into the thread's exclusive block:
// the thread first attaches, changes its block, rebases its times, or writes into the
// shared chain.
#pragma once

#include <cstdint>

#include "src/writer/reservation.hpp"
#include "src/writer/writer_call.hpp"

namespace arctrace {

__attribute__((noinline)) Reservation reserve_slow(Nesting nesting, uint16_t type,
                                                   uint32_t body_size, uint64_t ticks);

// The calling thread's state with a slot, which the thread claims now if it has none.
// Null if it can't have one.
ThreadState* attached_thread(Nesting nesting, uint64_t ticks);

// The same for a record that is about to be written: null counts it as lost.
ThreadState* recording_thread(Nesting nesting, uint64_t ticks);

// Attaches the calling thread if it is not attached and may be.
void attach_this_thread();

// To be called when the process joins a session as it runs: vfork children may run that
// no hook saw begin.
void expect_vfork_children();

// Sets what reports the calls that wait for their duration (src/calls/call_filter.hpp):
// it is called before the thread's next record, if a call waits. To be called once,
// before there is one.
using ReportWaitingCalls = void(Nesting nesting, ThreadState& state);
void set_report_waiting_calls(ReportWaitingCalls* report);

}  // namespace arctrace
