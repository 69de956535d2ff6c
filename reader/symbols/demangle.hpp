// Demangles C++ names, with bounds on time and memory.
#pragma once

#include <string>

namespace arctrace::reader {

// The demangled form of a linker's name, with all its template arguments and parameters.
// `name` itself if it is not a mangled C++ name, or if its demangled form has more than
// 64 KiB or takes unreasonable work: a name of 200 bytes can stand for gigabytes, because
// each back reference may double what stands before it.
std::string demangle_untrusted(const std::string& name);

}  // namespace arctrace::reader
