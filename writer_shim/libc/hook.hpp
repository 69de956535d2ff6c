// Support for hooks of libc functions.
//
// A hook comes before libc's function of that name in the symbol search. It may be called
// from anywhere: by constructors that run before ours, in signal handlers, in vfork
// children. So it holds no lock, leaves errno as the real function set it, and does
// nothing of its own without a session.
#pragma once

#include <cstdint>

#include "src/api/shim_interface.h"
#include "src/base/shared_atomics.hpp"
#include "writer_shim/elf/symbol_search.hpp"

#define ARCTRACE_HOOK extern "C" __attribute__((visibility("default")))

namespace arctrace::shim {

// The next definition of a hooked function, which is looked up once.
template <class Function>
class RealFunction {
 public:
  constexpr explicit RealFunction(const char* name) : name_(name), address_(0) {}

  // Null: no library has it.
  Function* get() {
    uint64_t address = IpcAtomics::load_relaxed(address_);
    if (__builtin_expect(address == 0, 0)) {
      address = find_function(name_, SearchFrom::kNext);
      IpcAtomics::store_relaxed(address_, address);
    }
    return reinterpret_cast<Function*>(static_cast<uintptr_t>(address));
  }

 private:
  const char* name_;
  uint64_t address_;
};

inline bool has_session() { return arctrace_shim_session() != nullptr; }

}  // namespace arctrace::shim
