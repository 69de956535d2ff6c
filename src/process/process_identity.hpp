// The process' identity in the session, with the state of its definitions. It is in a
// page that fork wipes, so that a child, however it was forked, makes its own. The writer
// asks for it when a thread attaches.
#pragma once

#include <arctrace/format.h>

#include <cstdint>

#include "src/buffer/buffer_view.hpp"

namespace arctrace::writer {

// The contents of that page. A fork child begins with zeros.
struct ProcessState {
  uint32_t phase;  // kNone, kMaking, kReady
  uint32_t id;
  uint32_t parent_id;
  uint32_t forker;             // writer identity of the thread that forked; 0: not known
  uint32_t pid;                // 0: not known yet
  uint32_t origin;             // enum arctrace_process_origin
  uint64_t start_ticks;        // ticks of its first record, or of the attach
  uint64_t forked_ticks;       // of the call of fork that made it; 0: not known
  uint64_t definitions_chain;  // this process' SharedChain word
  uint32_t defined;            // 1: its PROCESS record is written
  uint64_t emitted;            // registry entries written so far
  uint32_t generation;         // control.definitions_round for which they are written
  uint64_t emitted_bytes;      // of registry entries, since all were begun anew
  uint64_t since_ticks;        // entries retired by then are not emitted; 0: start_ticks
  uint64_t counted;            // registry entries counted as lost, up to this one
  uint32_t self_counted;       // 1: its PROCESS record is counted, too
  uint32_t compactions;        // how often all was begun anew to free space
  uint64_t filter_verdict;     // of the record filter (src/writer/record_filter.cpp)
  uint32_t thread_slot;        // a slot in which a thread of it was seen, from 1; 0: none

  static constexpr uint32_t kNone = 0;
  static constexpr uint32_t kMaking = 1;
  static constexpr uint32_t kReady = 2;
};

// Whether the session has another identity to give, by `next`, which is
// control.process_next or control.writer_next.
bool has_next_identity(uint32_t& next);

// The calling process' state with an identity, which is made if there is none; `ticks` is
// then the process' start. Null while another thread makes it, if that would take a
// system call that is forbidden, if the session has no identity left, or if there is no
// session.
ProcessState* current_process(uint64_t ticks);

// The calling process' state, with an identity or without. Null if there is no session.
ProcessState* process_state_of_session();

// The calling process' id, for which the kernel is asked if it has no identity yet; 0 if
// that is forbidden.
uint32_t process_id();

// Notes the process id of a fork child, so that its identity can be made without a system
// call, and when its parent called fork (0: not known). Returns the parent's identity; 0:
// the parent has none, and the child keeps what was noted when the parent was forked.
uint32_t begin_forked_process(uint32_t pid, uint64_t forked_ticks);

// The calling process' id if it has an identity, else 0. A vfork child gets its parent's,
// because it shares the parent's memory.
uint32_t known_pid();

// Whether this process was forked and has no identity yet.
bool is_new_process();

// Makes the page for the identity, whose number will come from the counters of `buffer`,
// an object of static storage duration. False: no memory. To be called when a session is
// joined.
bool make_process_state(const BufferView& buffer);

// Forgets the identity that the process had in a session that it has left.
void forget_process_identity();

}  // namespace arctrace::writer
