// Notices on which of its stacks a thread runs, and records each change. Also finds
// stacks for slow paths where the present one is too small.
//
// A thread's open frames are those of one stack: its own, or a coroutine's that the
// process has made (src/stack/coroutine_stacks.hpp). When the thread goes on on another
// stack, its open frames are saved, and the saved frames of that stack become the open
// ones.
#pragma once

#include <cstdint>

#include "src/hook_abi/shim_types.h"
#include "src/os/roomy_stack.hpp"
#include "src/stack/coroutine_stacks.hpp"
#include "src/writer/thread_state.hpp"
#include "src/writer/writer_call.hpp"

namespace arctrace::writer {

// The thread runs, or is about to, in a frame that ends at `address`. Nothing is done in
// nested calls, on the signal stack, and in vfork children. `is_switch`: it goes there by
// a function that switches stacks. Only such a function can enter a stack that is an
// array on the thread's own: otherwise the array may be gone, and its memory the own
// stack's again.
__attribute__((noinline)) void cache_current_stack_slow(Nesting nesting,
                                                        uintptr_t address, uint64_t ticks,
                                                        bool is_switch);
inline void cache_current_stack(Nesting nesting, uintptr_t address, uint64_t ticks) {
  if (has_coroutine_stacks()) cache_current_stack_slow(nesting, address, ticks, false);
}

// As cache_current_stack_slow(), as a writer call of its own, for a thread that is about
// to go on at this stack pointer.
void record_stack_switch(uintptr_t stack_pointer, bool is_switch);

// To be called before and after a vfork child runs on its parent's stack and with its
// thread state.
void record_vfork_begin();
void record_vfork_end(uint32_t child_pid);

// Asks the kernel for the signal stack of a thread whose hooks have not seen it: one that
// began before the process was joined, or that makes the system call itself. Makes two
// system calls, once. Nothing is asked in tasks that use another thread's thread-local
// storage, and where no system calls may be made.
void ask_for_signal_stack(ThreadLocal& local);

inline bool has_little_room() {
  if (stack_is_short()) return true;
  ThreadLocal& local = thread_local_state;
  if (!__builtin_expect(local.stacks.is_signal_known, 1)) ask_for_signal_stack(local);
  const auto here = reinterpret_cast<uintptr_t>(__builtin_frame_address(0));
  return local.stacks.is_near_end_of_signal_stack(here, kSlowPathRoom);
}

// Calls f() on a stack that has enough space for a slow path. Split stacks have little
// space, and so have signal stacks: programs choose their sizes by what their handlers
// need, if not by what the kernel does.
template <class F>
__attribute__((always_inline)) inline void with_room(F f) {
  if (!__builtin_expect(has_little_room(), 0)) return f();
  run_on_roomy_stack([](void* data) { (*static_cast<F*>(data))(); }, &f);
}

// The functions that a thread has open when its process is joined as it runs. No hook saw
// them begin, so they are found by unwinding, once, before the thread's first record, and
// become its outermost open frames: its first STACK lists them. Those without a hook at
// their exit end when a later call shows it (src/stack/abandoned_frames.hpp).

// To be called when the process joins a session as it runs, before anything is recorded:
// `find` unwinds the thread that calls it.
void set_open_frames_finder(arctrace_shim_open_frames* find);

// The number of the last session that was joined while the process ran; 0: none.
extern __attribute__((visibility("hidden"))) uint32_t joined_running;

// Has a thread that begins now start without open functions, because nobody asks for any.
inline void begin_without_frames(ThreadLocal& local) {
  local.frames_known_in = IpcAtomics::load_relaxed(joined_running);
}

// Whether begin_with_open_frames() is to be called before the thread's first record.
inline bool may_have_open_frames(const ThreadLocal& local) {
  return local.frames_known_in != IpcAtomics::load_relaxed(joined_running);
}

// Finds the functions that are open around `call`, if that is the thread's first call
// that the session sees. `begins`: the function of `call` is about to begin; else it is
// open itself. Takes some us for each frame. REQUIRES: may_have_open_frames().
void begin_with_open_frames(Nesting nesting, const arctrace_shim_call& call, bool begins,
                            uint64_t ticks);

}  // namespace arctrace::writer
