// What /proc tells a process about itself, without libc.
#pragma once

#include <cstdint>

namespace arctrace {

// The executable's path, at most `size` bytes, unterminated. Returns its length, 0 if
// it can't be read.
uint32_t read_executable(char* to, uint32_t size);

// The working folder's path and a slash, in the same way.
uint32_t read_working_folder(char* to, uint32_t size);

// The arguments, each ended by a zero byte, at most `size` bytes in all.
uint32_t read_command_line(char* to, uint32_t size);

}  // namespace arctrace
