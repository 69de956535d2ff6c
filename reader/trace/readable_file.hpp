// Opening what may be a file, or a buffer in kernel memory, to be read at any place.
#pragma once

#include <absl/status/statusor.h>

#include <string>

namespace arctrace::reader {

// A descriptor for pread: of the file, or of a private copy if `path` names the pinned
// map of a buffer that the kernel writes. It does not wait for a FIFO's writer.
absl::StatusOr<int> open_readable(const std::string& path);

}  // namespace arctrace::reader
