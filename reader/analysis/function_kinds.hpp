// Kinds of functions of libc, POSIX and the C++ runtime: what they wait for, or ask the
// system for.
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
  kFile,        // names and attributes of files, directories
  kFutex,       // the waits of locks, if calls within libc are recorded
  kIo,          // descriptors and streams: open, read, write, printf
  kLoader,      // dlopen, dlsym
  kLock,        // mutexes, read-write locks, file locks, "once"
  kMemory,      // mappings
  kNetwork,     // sockets and names of hosts
  kPoll,        // waits until a descriptor is ready: poll, epoll_wait
  kProcess,     // fork, exec, wait, exit
  kSemaphore,   // semaphores and message queues
  kSignal,      // sending and handling of signals
  kSleep,       // waits until a time or for a signal
  kThread,      // creation and end of threads
  kTime,        // queries of clocks and formats of dates
};
inline constexpr size_t kFunctionKinds = static_cast<size_t>(FunctionKind::kTime) + 1;

// "allocation", "condition", ...
std::string_view kind_name(FunctionKind kind);

// The kind of a function by its name, and by its module if that is known: a function that
// the program itself defines has no kind, whatever its name. Variants (open64,
// __read_chk, __isoc99_fscanf) are of the kind of their function.
std::optional<FunctionKind> function_kind(const Function& function);

}  // namespace arctrace::reader
