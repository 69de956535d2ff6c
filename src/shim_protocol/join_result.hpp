// What the shim's function for joining returns to the recorder that has it called.
#pragma once

namespace arctrace::shim {

// Added to the error number. If the recorder is gone when the function returns, its
// result is taken for the number of a system call (src/recorder/attach/return_frame.hpp),
// which must not exist.
inline constexpr int kJoinResult = 0x20000000;

}  // namespace arctrace::shim
