// C++ names for people.
#pragma once

#include <string>

namespace arctrace::reader {

// The demangled form of a linker name, templates and parameters kept whole. `name` itself
// if it is not a mangled C++ name, or one whose demangled form is beyond reason (more
// than 64 KiB, or more work than output): a name of 200 bytes can stand for gigabytes,
// because a back reference doubles what stands before it.
std::string demangle_untrusted(const std::string& name);

}  // namespace arctrace::reader
