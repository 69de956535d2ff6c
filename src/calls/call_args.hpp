// Collects the arguments and return values of calls into the bodies of ARGUMENTS and
// RESULT records.
#pragma once

#include <arctrace/format.h>

#include <cstddef>
#include <cstdint>

#include "src/hook_abi/shim_types.h"

namespace arctrace {

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

// Whether it is passed in a vector register.
bool has_vectors(const arctrace_shim_arg_spec& spec);
// Whether one of the arguments is.
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

}  // namespace arctrace
