// What well-known functions of libc, POSIX and the C++ runtime do, as far as it is of
// interest where time goes: they wait, or ask the system for something.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "reader/replay/functions.hpp"

namespace arctrace::reader {

enum class FunctionKind : uint8_t {
  kAllocation,  // malloc, operator new
  kCondition,   // condition variables and barriers
  kFile,        // names, attributes and folders of files
  kFutex,       // what locks wait in, where libc's own functions are recorded
  kIo,          // descriptors and streams: open, read, write, printf
  kLoader,      // dlopen, dlsym
  kLock,        // mutexes, read-write locks, file locks, "once"
  kMemory,      // mappings
  kNetwork,     // sockets and names of hosts
  kPoll,        // until something is ready: poll, epoll_wait
  kProcess,     // fork, exec, wait, exit
  kSemaphore,   // and message queues
  kSignal,      // sent and handled
  kSleep,       // until a time or a signal
  kThread,      // made and joined
  kTime,        // asked for
};
inline constexpr size_t kFunctionKinds = static_cast<size_t>(FunctionKind::kTime) + 1;

// "allocation", "condition", ...
std::string_view kind_name(FunctionKind kind);

// By the function's name, and by its module, if that is known: what the program itself
// calls "read" is nothing well-known. Names of variants count as their function's
// (open64, __read_chk, __isoc99_fscanf).
std::optional<FunctionKind> function_kind(const Function& function);

}  // namespace arctrace::reader
