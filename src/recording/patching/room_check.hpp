// Rooms for hooks (-fpatchable-function-entry) of a program's functions that the shim
// cannot use, because nothing says where these functions begin.
#pragma once

#include <cstddef>
#include <string>

namespace arctrace::recording {

struct Rooms {
  size_t all = 0;
  size_t without_begin = 0;  // neither unwind tables nor symbols are about the function
};

// Those of the ELF file at `path`; none if it cannot be read, or is not for x86-64. Reads
// its code and unwind tables if it has rooms and its symbols are stripped.
Rooms count_rooms_untrusted(const std::string& path);

}  // namespace arctrace::recording
