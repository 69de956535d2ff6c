// Chooses a buffer's size by the memory that there is, before the buffer is created.
#pragma once

#include <absl/status/statusor.h>

#include <string>

#include "src/recorder/buffer/available_memory.hpp"
#include "src/recorder/buffer/buffer.hpp"

namespace arctrace::recorder {

// Messages for the user about the buffer that was chosen; each may be empty.
struct BufferFit {
  std::string size;     // why it has not its usual size
  std::string warning;  // what its directory costs
};

// The memory of which a buffer takes its part.
struct MemorySources {
  AvailableMemory machine;
  CgroupMemory cgroup;
  AvailableMemory directory;  // without a limit for a buffer in the kernel
};

// The memory that this process finds for such a buffer.
MemorySources find_memory_sources(const BufferOptions& options);

// Makes the buffer smaller if it has its usual size and would take more than a quarter of
// the machine's memory, of a cgroup's limit, or of the directory's free space.
// kResourceExhausted: the buffer does not fit into a cgroup, whose limit would end this
// process while it fills the buffer; or there is no space for the smallest one.
// kFailedPrecondition: the usual directory is on a disk.
absl::StatusOr<BufferFit> fit_to_memory(BufferOptions& options,
                                        const MemorySources& sources);

}  // namespace arctrace::recorder
