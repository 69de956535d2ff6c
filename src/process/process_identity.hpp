// The process' identity in the session. It lives in a page that fork wipes, so that a
// child, however it was forked, makes its own.
#pragma once

#include <arctrace/format.h>

#include <cstdint>

#include "src/buffer/buffer_view.hpp"

namespace arctrace {

// What fork wipes: a child begins with zeros and makes its own identity.
struct ProcessState {
  uint32_t phase;  // kNone, kMaking, kReady
  uint32_t id;
  uint32_t parent_id;
  uint32_t pid;                // 0: not known yet
  uint32_t origin;             // enum arctrace_process_origin
  uint64_t start_ticks;        // of its first record, or of the attach
  uint64_t definitions_chain;  // this process' SharedChain word
  uint32_t defined;            // 1: its PROCESS record is written
  uint32_t emitting;           // 1: a thread emits the registry (a try-lock)
  uint64_t emitted;            // registry entries written so far
  uint32_t round;              // control.definitions_round that they are written for

  static constexpr uint32_t kNone = 0;
  static constexpr uint32_t kMaking = 1;
  static constexpr uint32_t kReady = 2;
};

// The calling process' state, with an identity; null while another thread is making it,
// if that would take a system call that is forbidden, or if there is no session. `ticks`:
// stands for the process' start if it has none yet.
ProcessState* current_process(uint64_t ticks);

// The calling process was forked, and its number is `pid`: so its identity takes no
// system call.
void begin_forked_process(uint32_t pid);

// The calling process' number, if it has an identity; else 0. A vfork child's is its
// parent's, whose memory it has.
uint32_t known_pid();

// Whether this process was forked and has no identity yet.
bool is_new_process();

// Makes the page for the identity, which comes out of the counters of `buffer`, a static
// object. False: there is no memory. To be called once, when a session is joined.
bool make_process_state(const BufferView& buffer);

}  // namespace arctrace
