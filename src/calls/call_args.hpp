// Arguments and results of chosen calls, on their way into ARGUMENTS and RESULT records.
#pragma once

#include <arctrace/format.h>

#include <cstddef>
#include <cstdint>

#include "src/hook_abi/shim_types.h"

namespace arctrace {

// The body of an ARGUMENTS or RESULT record.
struct ArgsBody {
  static constexpr uint32_t kStringMax = 64;  // bytes of a string that are kept
  static constexpr uint32_t kNamesSize = sizeof(arctrace_arg_head) + sizeof(uint32_t);
  static constexpr uint32_t kBytesMax =
      sizeof(arctrace_args_body) +
      ARCTRACE_SHIM_RECORDED_ARGS_MAX * (sizeof(arctrace_arg_head) + kStringMax) +
      kNamesSize;

  uint32_t size = 0;
  std::byte bytes[kBytesMax];
};

// All that arguments are passed in, or the first of each that a result is returned in.
struct ArgSources {
  const uintptr_t* integers;
  const uint64_t* vectors;  // their low halves; null where has_vectors() is false
  uintptr_t stack;          // address of the first argument there
};
bool has_vectors(const arctrace_shim_arg_spec& value);
bool has_vectors(const arctrace_shim_call_args& values);  // among the arguments

// Strings are read with a system call, so that a bad address does no harm; where none may
// be made only their address is kept.
void gather_args(const arctrace_shim_call_args& values, const ArgSources& places,
                 ArgsBody& body);

// If the result says that the call failed, with errno as it is now.
void gather_retval(const arctrace_shim_call_args& values, const ArgSources& places,
                   ArgsBody& body);

}  // namespace arctrace
