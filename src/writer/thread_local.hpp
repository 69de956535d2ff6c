// The writer's thread-local variables. A thread has them even while it has no state.
#pragma once

#include <arctrace/format.h>

#include <cstddef>
#include <cstdint>

#include "src/stack/filtered_frames.hpp"
#include "src/stack/open_frames.hpp"
#include "src/stack/pending_calls.hpp"
#include "src/stack/thread_stacks.hpp"
#include "src/writer/thread_state.hpp"

namespace arctrace {

// A change of the number of open frames whose record is being written. A signal handler
// that finds it unfinished, or a call that follows one whose handler jumped, sees by the
// record whether the change counts.
struct StackChange {
  std::byte* word0;  // of the record; null: there is none
  FrameCount depth;  // of open frames when the record is complete
};

struct ThreadLocal {
  ThreadState* state;  // null before the first record
  // Stack pointer of the outermost writer call in progress, or 0; its lowest bit is set
  // once another call has interrupted that one.
  uintptr_t guard;
  uint32_t nesting;        // writer calls in progress inside the outermost one
  uint32_t nested_frames;  // see added_frames()
  StackChange change;      // of the innermost call in progress
  // Here, not in the state: a hook that is interrupted by a handler which forks goes on
  // in the child, where the state is wiped.
  CallEdges edges;
  // So many outermost frames are those of which a call in progress is about to record
  // that some were left; 0: none.
  uint32_t leaving;
  ThreadStacks stacks;   // here, not in the state: a fork child runs on the same ones
  PendingCalls* calls;   // the state's; here for the same reason
  uint32_t made_before;  // the last coroutine's stack that was made before it began
  // The session, as opening_frames.hpp counts, that knows which functions were open when
  // the thread began there.
  uint32_t frames_known_in;
  // What holds by the call filter inside the innermost open frame, and outside all of
  // them: a fork child begins with the former.
  FilterContext filter_context;
  FilterContext filter_outermost;
  // Index + 1 of the frame whose waiting entry `change` reports; 0: none.
  uint32_t reporting;
  // See lent_storage.hpp.
  uint32_t owner;       // id of the thread whose storage this is; 0: it is not lent
  uintptr_t own_guard;  // that thread's guard, while its storage is lent
  uintptr_t window_of_thread;  // where a stack pointer was found to be the thread's
  bool is_vforking;            // a task that the thread waits for uses its storage
  bool vfork_has_begun;        // in this session, while calls were recorded
  // The identities that the thread last had. They survive fork, so that a child finds its
  // parent's here.
  uint32_t last_writer;
  uint32_t last_process;
};
// initial-exec: the dynamic TLS model may allocate on first use, inside a hook.
extern thread_local constinit ThreadLocal thread_local_state
    __attribute__((tls_model("initial-exec")));

inline uintptr_t stack_pointer() {
  uintptr_t sp;
#if defined(__x86_64__)
  asm volatile("mov %%rsp, %0" : "=r"(sp));
#else
  asm volatile("mov %0, sp" : "=r"(sp));
#endif
  return sp;
}

// An address above the calling function's frame, and above all stack pointers that it
// has. Inlined, because it is that function's which it is written into.
__attribute__((always_inline)) inline uintptr_t frame_end() {
  return reinterpret_cast<uintptr_t>(__builtin_dwarf_cfa());
}

}  // namespace arctrace
