// Finds a part of a process's memory in its core file.
#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <string>

namespace arctrace::reader {

struct CorePart {
  uint64_t offset;  // in the file
  uint64_t size;    // bytes that the file has
};

// The first loaded segment of the core that begins with the 8 bytes of `magic`. `name` is
// for messages. InvalidArgument: the file is not a core, or has no such segment.
absl::StatusOr<CorePart> find_in_core_untrusted(int fd, const std::string& name,
                                                uint64_t magic);

}  // namespace arctrace::reader
