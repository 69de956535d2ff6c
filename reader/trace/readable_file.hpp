// Opens a file, or a buffer in kernel memory, for reading at any offset.
#pragma once

#include <absl/status/statusor.h>

#include <string>

namespace arctrace::reader {

// A descriptor for pread: of the file, or of a private copy if `path` is the pinned map
// of a buffer that the kernel writes. Does not wait for the writer of a FIFO. Error: the
// file cannot be opened, or the map cannot be copied.
absl::StatusOr<int> open_readable(const std::string& path);

}  // namespace arctrace::reader
