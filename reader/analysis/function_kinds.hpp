// Kinds of library functions by their names (src/base/libc_functions.hpp): what they wait
// for or ask the system for, and what they do with locks.
#pragma once

#include <optional>
#include <string_view>

#include "reader/replay/functions.hpp"
#include "src/base/libc_functions.hpp"

namespace arctrace::reader {

// "allocation", "condition", ...
std::string_view kind_name(FunctionKind kind);

// The kind of a function by its name, and by its module if that is known: a function that
// the program itself defines has no kind, whatever its name. Variants (open64,
// __read_chk, __isoc99_fscanf) are of the kind of their function.
std::optional<FunctionKind> function_kind(const Function& function);

// Whether a thread may wait for others in calls of this kind: a process, a peer, a time.
bool may_wait(FunctionKind kind);

// "mutex", "rwlock", "spinlock", "condition", "semaphore"
const char* lock_kind_name(LockKind kind);

// Returns nothing if the function does nothing with a lock that its first argument names.
std::optional<LockUse> lock_use(const Function& function);

}  // namespace arctrace::reader
