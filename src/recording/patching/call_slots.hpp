// Programs whose library calls the shim cannot hook.
#pragma once

#include <string>

namespace arctrace::recording {

// Whether the ELF file at `path` calls functions of libraries through slots that its code
// finds by sums of its own, as clang compiles position-independent programs with
// -mcmodel=large: it has such slots, and no PLT entry or instruction that names one. The
// shim hooks a slot only if it knows that the code uses it for calls alone. False also if
// the file cannot be read, or is not for x86-64. Reads the program's code, if it has no
// PLT.
bool computes_call_slots_untrusted(const std::string& path);

}  // namespace arctrace::recording
