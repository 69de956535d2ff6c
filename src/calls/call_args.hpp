// Arguments, return values and conditions of calls of single functions. Arguments and
// return values are collected into the bodies of ARGUMENTS and RESULT records. A call
// that fulfils a condition has the flight recorder take a snapshot when it ends.
#pragma once

#include <arctrace/format.h>

#include <cstddef>
#include <cstdint>

#include "src/hook_abi/shim_types.h"
#include "src/stack/open_calls.hpp"

namespace arctrace::writer {

// The body of an ARGUMENTS or RESULT record, or the locks of an ENTER.
struct ArgsBody {
  static constexpr uint32_t kStringMax = 64;  // bytes of a string that are kept
  static constexpr uint32_t kNamesSize = sizeof(arctrace_arg_head) + sizeof(uint32_t);
  static constexpr uint32_t kBytesMax =
      sizeof(arctrace_args_body) +
      ARCTRACE_SHIM_RECORDED_ARGS_MAX * (sizeof(arctrace_arg_head) + kStringMax) +
      kNamesSize;

  uint32_t size = 0;
  bool are_locks = false;
  std::byte bytes[kBytesMax];
};

// Where the arguments of a call are at its entry, or its return value at its exit.
struct ArgSources {
  const uintptr_t* integers;
  const uint64_t*
      vectors;  // low halves of the vector registers; null where has_vectors() is false
  uintptr_t stack;  // address of the first argument there
};

// Whether the argument is passed in a vector register.
bool has_vectors(const arctrace_shim_arg_spec& spec);
// Whether one of the arguments is passed in a vector register.
bool has_vectors(const arctrace_shim_call_args& args);

// Fills `body` with the arguments, or the locks, that `args` describes. Strings are read
// with a system call, so that a bad address does no harm; where no system call may be
// made, only their addresses are kept.
void gather_args(const arctrace_shim_call_args& args, const ArgSources& sources,
                 ArgsBody& body);

// Fills `body` with the return value, and with errno if the value means that the call
// failed.
void gather_retval(const arctrace_shim_call_args& args, const ArgSources& sources,
                   ArgsBody& body);

// Stores the low halves of the vector registers that arguments are passed in, of which
// the first also has a result, as the program has left them: the writer's own code is
// compiled for general registers only. It changes no register. It is not inlined, so that
// tests see that no other function does it.
__attribute__((noinline)) void store_vectors(
    uint64_t (&vectors)[ARCTRACE_SHIM_VECTORS_MAX]);

// Sets the conditions on calls. Only calls of functions that have some come to the two
// functions below. `all`: `count` conditions, at most 64, which stay. To be called before
// there is a call that has one.
void set_call_conditions(const arctrace_shim_call_condition* all, uint32_t count);

// Notes that a call with this return slot begins, because a condition may be about its
// duration.
void conditional_call_begins(PendingCalls& calls, uintptr_t return_slot);

// The call ends, and its exit was recorded. `conditions`: one bit for each condition of
// the call. If the call fulfils some of them, writes the MARK of each and requests a
// snapshot; that may be a system call.
void conditional_call_ends(uint64_t conditions, uintptr_t return_slot, uintptr_t retval);

}  // namespace arctrace::writer
