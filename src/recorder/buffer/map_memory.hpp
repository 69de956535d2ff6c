// Creates a buffer as the value of one BPF array map: kernel memory that is never paged
// out and that BPF programs can write. Buffer::create() calls it for a recording of the
// kernel.
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <cstdint>
#include <string>

namespace arctrace {

// The BPF file system in which maps are pinned. /sys/fs/bpf would not do: as a rule only
// root may enter it, and --group needs access for others.
inline constexpr char kMapDirectory[] = "/run/arctrace";

// Creates a map of `size` bytes and returns its descriptor. kInvalidArgument: more than
// ARCTRACE_BPF_SIZE_MAX. Other codes (kPermissionDenied, kUnimplemented ...) come from
// the kernel.
absl::StatusOr<int> create_map(uint64_t size);

// Pins the map under a new name in kMapDirectory, which is mounted if necessary, and
// returns the path. Members of `group` may use the map too; -1: only this user.
absl::StatusOr<std::string> pin_map(int map, int64_t group);

}  // namespace arctrace
