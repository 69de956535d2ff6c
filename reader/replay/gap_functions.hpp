// Functions that stand for the time of which records are missing (SPEC.md READ-9).
#pragma once

#include "reader/replay/functions.hpp"

namespace arctrace::reader {

// Interns each function when it is first asked for.
class GapFunctions {
 public:
  // `functions` must outlive this object.
  explicit GapFunctions(Functions& functions) : functions_(functions) {}

  FunctionId off() { return functions_.intern({}, "[functions off]", {}); }
  FunctionId lost() { return functions_.intern({}, "[lost]", {}); }
  FunctionId overwritten() { return functions_.intern({}, "[overwritten]", {}); }
  FunctionId missing() { return functions_.intern({}, "[missing]", {}); }

 private:
  Functions& functions_;
};

}  // namespace arctrace::reader
