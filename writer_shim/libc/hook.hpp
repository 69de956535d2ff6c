// Support for hooks of libc functions, and the functions of each family of hooks that the
// shim's start and other hooks call: they look up libc's functions before they are
// needed, or only once.
//
// A hook comes before libc's function of that name in the symbol search. It may be called
// from anywhere: by constructors that run before the shim's, in signal handlers, in vfork
// children. So it holds no lock, leaves errno as the real function set it, and does
// nothing of its own without a session.
#pragma once

#include <pthread.h>

#include <cstdint>

#include "src/api/shim_interface.h"
#include "src/base/shared_atomics.hpp"
#include "writer_shim/elf/symbol_search.hpp"

#define ARCTRACE_HOOK extern "C" __attribute__((visibility("default")))

namespace arctrace::shim {

// The next definition of a hooked function, which is looked up once.
template <class Function>
class RealFunction {
 public:
  constexpr explicit RealFunction(const char* name) : name_(name), address_(0) {}

  // The function; null: no library has it.
  Function* get() {
    uint64_t address = IpcAtomics::load_relaxed(address_);
    if (__builtin_expect(address == 0, 0)) {
      address = find_function(name_, SearchFrom::kNext);
      IpcAtomics::store_relaxed(address_, address);
    }
    return reinterpret_cast<Function*>(static_cast<uintptr_t>(address));
  }

 private:
  const char* name_;
  uint64_t address_;
};

inline bool has_session() { return arctrace_shim_session() != nullptr; }

// exec and posix_spawn, whose new program goes on in the session (exec_hooks.cpp). This
// looks up libc's functions before they are needed, because a vfork child should not.
void find_exec_functions();

void find_spawn_functions();

// fork, vfork and clone (fork_hooks.cpp). The hooks note when a thread forks, and which
// frames it has open then. A child learns this in no other way, because fork wipes the
// states of threads.

// Registers handlers for fork(), and looks up _Fork(), which calls none. To be called
// once.
void prepare_fork_hooks();

// Whether syscall(number) may fork. If so, the call belongs between the next two
// functions, the second one where it returns 0.
bool may_fork(long number);
void before_fork();
void in_child_of_syscall(long number, const long* arguments);

// Whether the calling thread is a vfork child, whose records are its parent's.
bool in_vfork_child();

// To be called before and after another call that makes a vfork child; `pid` is the
// child's id, or -1 if there is none.
void begin_vfork();
void end_vfork(long pid);

// Looks up libc's clone(), which may make a task that has no thread-local storage of its
// own, before a program calls it where no function can be looked up.
void find_clone();

// The creation of threads, their names and their signal stacks (thread_hooks.cpp): a
// thread takes its slot in the session when it starts, rather than in its first hook.

// Looks up libc's functions, and maps memory for future threads. To be called once.
void prepare_thread_hooks();

// The id of a living thread; 0: not known.
uint32_t thread_id(pthread_t thread);

// The end of threads is recorded by the destructor of a key (thread_end_hooks.cpp).

// Looks up libc's functions, because a thread may end itself in a signal handler. To be
// called once.
void prepare_thread_end_hooks();

// Makes the key, if there is a session and no key yet. To be called before there is a
// second thread, or when a program is joined that has some.
void make_thread_end_key();

// Has the end of the calling thread recorded, if there is a key.
void watch_thread_end();

// Has the ends of threads recorded that were there when the program was joined, of each
// from its first record on.
void watch_older_threads();

// The end of the process by exit(), return from main, or _exit() (process_hooks.cpp).
// This finds the _exit() and _Exit() that come after ours in the symbol search. To be
// called before programs may call them where no lock of the loader may be taken; until
// then ours end the process.
void find_exit_functions();

// Has libc call us at exit() and return from main. To be called once.
void watch_exit();

// prctl and syscall: changes of a thread or a process about itself. This looks up libc's
// functions before they are needed.
void find_prctl_functions();

// mlockall, which a limit on locked memory may forbid because of memory that is mapped
// for arctrace. This looks up libc's function, before a program calls it where no
// function can be looked up.
void find_mlockall();

}  // namespace arctrace::shim
