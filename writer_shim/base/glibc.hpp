// The functions that the shim takes from glibc, declared weak, so that the shim can be
// loaded with another libc, where it does nothing. (musl refuses to start a program whose
// LD_PRELOAD lacks a symbol.)
#pragma once

#include <stdlib.h>

#include <cstdint>

#include "src/os/process_facts.hpp"

// The loader's: the beginning of the main thread's stack.
extern "C" void* __libc_stack_end;

// pthread_atfork(), but not bound to a module, with whose end the handlers would be
// removed.
extern "C" int __register_atfork(void (*before)(), void (*in_parent)(),
                                 void (*in_child)(), void* module);

#pragma weak __libc_stack_end
#pragma weak __register_atfork
#pragma weak on_exit

namespace arctrace::shim {

// Whether this glibc is one with which the shim was tried: 2.28 or later.
inline bool is_known_glibc() {
  constexpr uint32_t kMajor = 2;
  constexpr uint32_t kMinor = 28;
  const char* text = gnu_get_libc_version();
  const auto take_number = [&text] {
    uint32_t number = 0;
    for (; *text >= '0' && *text <= '9' && number < 1000; ++text) {
      number = number * 10 + static_cast<uint32_t>(*text - '0');
    }
    if (*text == '.') ++text;
    return number;
  };
  const uint32_t major = take_number();
  return major != kMajor ? major > kMajor : take_number() >= kMinor;
}

}  // namespace arctrace::shim
