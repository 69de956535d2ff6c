// Keeps the memory of a named session pinned after the command that has created it: the
// kernel unlocks what a process has locked when that process ends.
#pragma once

#include <absl/status/statusor.h>

#include <string>

#include "src/recorder/buffer/buffer.hpp"

namespace arctrace {

// Starts a process that pins the buffer as `policy` says, and stays until the buffer's
// file is removed or cut off. Its lock on the file says how much it has pinned
// (keeper_lock.hpp). Returns once it has done so: what is refused under kTry; empty:
// nothing is. ResourceExhausted: pinning was refused under kRequire. REQUIRES: the
// calling process has one thread; the buffer has a file, and `policy` is not kNo.
absl::StatusOr<std::string> keep_pinned(Buffer& buffer, PinPolicy policy);

}  // namespace arctrace
