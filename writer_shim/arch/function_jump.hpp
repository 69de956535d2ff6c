// Makes a function that does nothing jump to another one.
#pragma once

#include <cstdint>

namespace arctrace::shim {

// Makes the function at `from`, which must be empty, jump to `target`, also while other
// threads run it. False: the function is not empty, it cannot be changed, or the target
// is too far away.
bool make_function_jump(uintptr_t from, uintptr_t target);

}  // namespace arctrace::shim
