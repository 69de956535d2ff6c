// Library functions that can't be called through like any other, by name.
#pragma once

#include <cstdint>

namespace arctrace::shim {

enum class CallKind : uint8_t {
  kFollowed,  // called through: its entry and its exit are recorded
  // Jumped to: it looks at who called it, or returns twice. Its exit is recorded at once.
  kPassed,
  kLast,         // jumped to: it does not return
  kInitializer,  // of a module, to be jumped to when its slots are hooked
  kUntouched     // not hooked
};

CallKind call_kind(const char* name);

}  // namespace arctrace::shim
