// Library calls about locks, as the shim's stubs begin and end them.
#pragma once

#include <cstdint>
#include <functional>

namespace arctrace::testing {

// Must be called once in a process that has joined.
void start_lock_calls();

// Makes a call of `key` about one or two locks, whose addresses are lock_of(key, 1 and
// 2); `body` runs in it.
void call_with_locks(uint64_t key, uint32_t locks, const std::function<void()>& body);

inline uint64_t lock_of(uint64_t key, uint32_t argument) {
  return key * 0x10001 + argument;
}

}  // namespace arctrace::testing
