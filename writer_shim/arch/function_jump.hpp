// A function that does nothing, made to jump to another one.
#pragma once

#include <cstdint>

namespace arctrace::shim {

// Has the function at `from`, which must be empty, jump to `target`, also while other
// threads run it. False: something else stands there, it can't be changed, or the target
// is too far away.
bool make_function_jump(uintptr_t from, uintptr_t target);

}  // namespace arctrace::shim
