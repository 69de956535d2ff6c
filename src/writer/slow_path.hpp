// The slow path of every record that can't simply be appended to the thread's exclusive
// block: the thread first attaches, changes its block, rebases its times, or writes into
// the shared chain.
#pragma once

#include <cstdint>

#include "src/hook_abi/shim_types.h"
#include "src/process/process_identity.hpp"
#include "src/writer/record.hpp"
#include "src/writer/thread_state.hpp"
#include "src/writer/writer_call.hpp"

namespace arctrace::writer {

// The calling thread's state with a slot, which the thread claims now if it has none.
// Null if it can't have one.
ThreadState* attached_thread(Nesting nesting, uint64_t ticks);

// As attached_thread(), for a record that is about to be written: if the result is null,
// it counts as lost.
ThreadState* recording_thread(Nesting nesting, uint64_t ticks);

// Attaches the calling thread if it is not attached and may be.
void attach_this_thread();

// To be called when the process joins a session as it runs: vfork children may run that
// no hook saw begin.
void expect_vfork_children();

// Sets the function that records the calls that wait for their duration
// (src/calls/call_filter.hpp): it is called before the thread's next record, if a call
// waits. To be called once, before there is one.
using ReportWaitingCalls = void(Nesting nesting, ThreadState& state);
void set_report_waiting_calls(ReportWaitingCalls* report);

// Sets a function that each thread calls once it is attached to the session, inside the
// writer call.
void set_thread_attached(void (*attached)());

// Attaches the calling thread, which takes private state, an identity, and a writer slot
// with a robust lock, and writes its definitions (claim_slot.cpp). Null if there is no
// session, no slot or no memory. REQUIRES: the thread is not attached, and the writer
// call is not nested.
ThreadState* attach_thread(uint64_t ticks);

// Finds space for a record in the thread's block or in a fresh one, and rebases times
// that are too far from the block's base (exclusive_records.cpp). REQUIRES: the writer
// call is the outermost one.
Reservation reserve_exclusive(ThreadState& state, ProcessState& process, uint16_t type,
                              uint32_t body_size, uint64_t ticks);

// OWNED -> CLOSED for the thread's exclusive block, if it has one.
void close_block(ThreadState& state);

// Sets the function that examines a full block of a thread's own while the buffer fills
// up: the shim finds which functions filled it, and switches some of them off. To be
// called once, before the process has other threads.
void set_full_block_hook(arctrace_shim_full_block* hook);

}  // namespace arctrace::writer
