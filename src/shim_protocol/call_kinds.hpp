// Which library functions cannot be called through like any other, by their names.
#pragma once

#include <cstdint>

namespace arctrace::shim {

enum class CallKind : uint8_t {
  kFollowed,  // called through: its entry and its exit are recorded
  // Jumped to, with its exit recorded at once: it examines its caller, or returns twice.
  kPassed,
  kLast,         // jumped to: it does not return
  kInitializer,  // a module's DT_INIT, jumped to after the module's slots are hooked
  kUntouched     // not hooked
};

// Of the function with this linker's name; kFollowed if it is not special.
CallKind call_kind(const char* name);

}  // namespace arctrace::shim
