// Functions that stand for time that is no function's: parts of a process' life
// (SPEC.md READ-8), and time of which records are missing (READ-9).
#pragma once

#include "reader/replay/functions.hpp"

namespace arctrace::reader {

// Interns each function when it is first asked for.
class MadeUpFunctions {
 public:
  // `functions` must outlive this object.
  explicit MadeUpFunctions(Functions& functions) : functions_(functions) {}

  FunctionId before() { return functions_.intern({}, "[before recording]", {}); }
  FunctionId loader() { return functions_.intern({}, "[loader]", {}); }
  FunctionId constructors() { return functions_.intern({}, "[constructors]", {}); }
  FunctionId exit() { return functions_.intern({}, "[exit]", {}); }
  FunctionId off() { return functions_.intern({}, "[functions off]", {}); }
  FunctionId filtered() { return functions_.intern({}, "[filtered out]", {}); }
  FunctionId lost() { return functions_.intern({}, "[lost]", {}); }
  FunctionId overwritten() { return functions_.intern({}, "[overwritten]", {}); }
  FunctionId missing() { return functions_.intern({}, "[missing]", {}); }

 private:
  Functions& functions_;
};

}  // namespace arctrace::reader
