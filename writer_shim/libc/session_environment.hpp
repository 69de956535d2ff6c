// The environment of programs that this one starts: with the session and the shim in it,
// though the program cleared or replaced its own.
//
// A program's own LD_PRELOAD is kept behind ours. A variable ARCTRACE_SESSION that is
// there already stands, also an empty one: a recording inside a recording, or a program
// that is not to be traced. Where the shim can't be reached (chroot), its entry is taken
// out, since the loader would complain about it on standard error; as would that of a
// program for another machine or word size. Nor is it there behind a seccomp filter that
// forbids to join, or for valgrind.
#pragma once

#include <alloca.h>

#include <cstddef>

#include "src/api/shim_interface.h"

namespace arctrace::shim {

// To be called once, when the program starts.
void remember_environment();

// What is to change in `environment`, which may be null, for `program`.
struct EnvironmentChange {
  enum class Preload : unsigned char { kKeep, kAdd, kRemove };
  const char* preload;  // its LD_PRELOAD's value, null: none
  Preload preload_change;
  bool add_session;
  size_t bytes;  // that change_environment() needs; 0: nothing is to change
};
EnvironmentChange plan_environment(const arctrace_shim_program& program,
                                   char* const* environment);

// The changed environment, built in `memory` (change.bytes, aligned for pointers); it
// shares the strings of `environment`.
char* const* change_environment(char* const* environment, const EnvironmentChange& change,
                                void* memory);

void* map_environment(size_t bytes);  // null: no memory
void unmap_environment(void* memory, size_t bytes);

// call(environment), with what the session needs in it. Without malloc: on the stack,
// as the caller may be a vfork child, whose memory is its parent's.
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
