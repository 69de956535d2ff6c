// Arguments and results of chosen calls, on their way into ARGUMENTS and RESULT records.
#pragma once

#include <arctrace/format.h>

#include <cstddef>
#include <cstdint>

#include "src/shim_interface.h"

namespace arctrace {

// The body of a record of values.
struct ValuesBody {
  static constexpr uint32_t kStringMax = 64;  // bytes of a string that are kept
  static constexpr uint32_t kBytesMax =
      4 + ARCTRACE_SHIM_ARGUMENTS_MAX * (4 + kStringMax);

  uint32_t size = 0;
  std::byte bytes[kBytesMax];
};

// `arguments`: those that are passed in integer registers. Strings are read with a system
// call, so that a bad address does no harm; where none may be made only their address is
// kept.
void gather_arguments(const arctrace_shim_values& values, const uintptr_t* arguments,
                      ValuesBody& body);

// `result`: of the integer register. If it says that the call failed, with errno as it is
// now.
void gather_result(const arctrace_shim_values& values, uintptr_t result,
                   ValuesBody& body);

}  // namespace arctrace
