// Keeps the memory of a named session pinned after the command that has created it has
// ended: the kernel unlocks what a process has locked when that process ends.
#pragma once

#include <absl/status/statusor.h>

#include <string>

#include "src/recorder/buffer/buffer.hpp"

namespace arctrace::recorder {

// Starts a process that pins the buffer as `policy` says, and stays until the buffer's
// file is removed or cut off. Its lock on the file says how much it has pinned
// (take_keeper_lock()). Returns once that is done: the warning, if some is refused under
// kTry, else empty. ResourceExhausted: pinning was refused under kRequire. REQUIRES: the
// calling process has one thread; the buffer has a file, and `policy` is not kNo.
absl::StatusOr<std::string> keep_pinned(Buffer& buffer, PinPolicy policy);

}  // namespace arctrace::recorder
