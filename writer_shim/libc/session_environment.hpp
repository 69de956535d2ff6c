// Puts the session and the shim into the environment of programs that this one starts,
// even if the program cleared or replaced its own environment.
//
// A program's own LD_PRELOAD comes after ours. A variable ARCTRACE_SESSION that is there
// already stays, even an empty one: it means a recording inside a recording, or a program
// that is not to be traced. The shim's entry is removed where the loader would complain
// about it on standard error: if the shim cannot be reached (chroot), and for a program
// of another machine or word size. It is also removed under a seccomp filter that forbids
// to join, and for valgrind. When the session is over, its entries are removed, so that
// the environment is as if it had not been.
#pragma once

#include <alloca.h>

#include <cstddef>

#include "src/api/shim_interface.h"

namespace arctrace::shim {

// Saves the variables that the recorder set: the options, which the environment of a
// program that was joined as it ran does not have, and the others in the environment.
// `is_joined`: the program was joined as it ran. To be called for each session.
void remember_environment(const char* options, bool is_joined);

// The options as an entry of an environment, which stays; empty: there are none.
const char* remembered_options();

// The changes that `environment`, which may be null, needs for `program`.
struct EnvironmentChange {
  enum class Preload : unsigned char { kKeep, kAdd, kRemove };
  const char* preload;  // the value of LD_PRELOAD; null: it is not set
  Preload preload_change;
  bool add_session;
  bool remove_session;
  size_t bytes;  // that change_environment() needs; 0: nothing has to change
};
EnvironmentChange plan_environment(const arctrace_shim_program& program,
                                   char* const* environment);

// The changed environment, built in `memory` (change.bytes, aligned for pointers). It
// shares the strings of `environment`.
char* const* change_environment(char* const* environment, const EnvironmentChange& change,
                                void* memory);

void* map_environment(size_t bytes);  // null: there is no memory
void unmap_environment(void* memory, size_t bytes);

// Returns call(environment), after adding the entries that the session needs. The
// environment is built without malloc, on the stack if it fits: the caller may be a vfork
// child, whose memory is its parent's.
template <class Call>
__attribute__((noinline)) auto with_session_environment(
    const arctrace_shim_program& program, char* const* environment, const Call& call) {
  constexpr size_t kOnStackMax = 8192;  // a thread's stack may have 16 KiB
  const EnvironmentChange change = plan_environment(program, environment);
  if (change.bytes == 0) return call(environment);
  if (change.bytes <= kOnStackMax) {
    return call(change_environment(environment, change, alloca(change.bytes)));
  }
  void* memory = map_environment(change.bytes);
  if (memory == nullptr) return call(environment);
  const auto result = call(change_environment(environment, change, memory));
  unmap_environment(memory, change.bytes);
  return result;
}

}  // namespace arctrace::shim
