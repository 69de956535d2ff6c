// What library functions do with locks, by their names.
#pragma once

#include <cstdint>
#include <optional>

#include "reader/replay/functions.hpp"

namespace arctrace::reader {

enum class LockKind : uint8_t { kMutex, kRwlock, kSpinlock, kCondition, kSemaphore };

// "mutex", "rwlock", "spinlock", "condition", "semaphore"
const char* lock_kind_name(LockKind kind);

struct LockFunction {
  enum class Does : uint8_t {
    kAcquire,  // waits until the caller has it, or with a result that is not 0 fails
    kAcquireShared,  // the same of a lock that other readers may have, too
    kRelease,
    kWait,  // for a condition (argument 1), without the mutex (argument 2); or a
            // semaphore
    kWake,  // ends waits of others
  };

  LockKind kind;
  Does does;
  bool tries = false;  // of one that takes: it returns at once, and waits for nobody
};

// Nothing if the function does nothing with a lock that its first argument names.
std::optional<LockFunction> lock_function(const Function& function);

}  // namespace arctrace::reader
