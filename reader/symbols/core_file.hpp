// Finding memory in a core file.
#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <string>

namespace arctrace::reader {

struct CorePart {
  uint64_t offset;  // in the file
  uint64_t size;    // bytes that the file has of it
};

// The first loaded segment of the core that begins with the 8 bytes of `magic`.
// kInvalidArgument: not a core, or no such memory in it.
absl::StatusOr<CorePart> find_in_core_untrusted(int fd, const std::string& name,
                                                uint64_t magic);

}  // namespace arctrace::reader
