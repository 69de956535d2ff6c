// The slow path of the hooks of functions that report their exits
// (src/calls/reported_calls.hpp): those with XRay's sleds, and those that gcc compiled
// with -mfentry and -minstrument-return=call.
#pragma once

#include "src/hook_abi/shim_types.h"
#include "writer_shim/filter/function_filter.hpp"

namespace arctrace::shim {

// Whether the exits of this function may be seen by its own hook. With arguments or a
// return value to record, it is called through.
inline bool may_report_exit(const KnownFunction& function) {
  return function.arg_specs == 0 &&
         (function.flags_at_start & ARCTRACE_SHIM_ENTRY_ONLY) == 0;
}

// To be called once, after the shim has been relocated.
void start_reported_calls();

// To be called when code was loaded or unloaded: functions may begin elsewhere.
void forget_unreported_returns();

}  // namespace arctrace::shim
