// The buffer as the value of one BPF array map: kernel memory, never paged, that BPF
// programs write too.
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <cstdint>
#include <string>

namespace arctrace {

// The BPF file system that maps are pinned in. Not /sys/fs/bpf, which is root's alone as
// a rule: --group needs a way in.
inline constexpr char kMapFolder[] = "/run/arctrace";

// A map of `size` bytes: its descriptor. kPermissionDenied, kUnimplemented ...: as the
// kernel says. kInvalidArgument: more than ARCTRACE_BPF_SIZE_MAX.
absl::StatusOr<int> create_map(uint64_t size);

// Pins the map under a name of its own in a BPF file system of ours, which is mounted if
// it is not: its path. Members of `group` may use it too; -1: nobody else.
absl::StatusOr<std::string> pin_map(int map, int64_t group);

}  // namespace arctrace
