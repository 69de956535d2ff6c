// Functions that stand for time that is no function's: parts of a process' life
// (SPEC.md READ-8), time of which records are missing (READ-9) or that interrupts took
// (READ-12), and coroutines (READ-10).
#pragma once

#include <absl/strings/str_cat.h>

#include <cstdint>

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
  FunctionId coroutine(uint32_t number) {
    return functions_.intern({}, absl::StrCat("coroutine ", number), {});
  }
  FunctionId not_unwound() {
    return functions_.intern({}, "[frames that could not be unwound]", {});
  }
  FunctionId interrupts() { return functions_.intern({}, "[interrupts]", {}); }
  FunctionId missing() { return functions_.intern({}, "[missing]", {}); }

 private:
  Functions& functions_;
};

}  // namespace arctrace::reader
