// What the recorder wants of the shim, in the environment's ARCTRACE_OPTIONS.
#pragma once

#include <cstdint>

namespace arctrace::shim {

enum class LibraryCalls : uint8_t {
  kNone,
  kProgram,  // those that the program itself makes
  kAll       // those between libraries too
};

struct ShimOptions {
  LibraryCalls library_calls = LibraryCalls::kNone;
};

// "NAME=VALUE;NAME=VALUE": libcall=none|program|all. What it does not know is left out.
ShimOptions parse_options(const char* text);

}  // namespace arctrace::shim
