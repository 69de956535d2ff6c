// The flags that a filter of functions has for the functions of tests, in place of the
// shim.
#pragma once

#include <cstdint>

namespace arctrace::testing {

using FlagsOfKey = uint32_t(uint64_t key);

// Null: no function has any. It stays the same while calls are open.
inline FlagsOfKey* flags_of_key = nullptr;

// The flags (enum arctrace_shim_call_flags) of the function `key`.
inline uint32_t filter_flags(uint64_t key) {
  return flags_of_key == nullptr ? 0 : flags_of_key(key);
}

}  // namespace arctrace::testing
