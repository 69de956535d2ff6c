// Two kinds of memory for a buffer. The value of one BPF array map, for a recording of
// the kernel: kernel memory that is never paged out and that BPF programs can write. And
// shared memory in huge pages. Buffer::create() calls both.
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>
#include <arctrace/format.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

namespace arctrace::recorder {

// The BPF file system in which maps are pinned. /sys/fs/bpf would not do: as a rule only
// root may enter it, and --group needs access for others.
inline constexpr char kMapDirectory[] = "/run/arctrace";

// Creates a map of `size` bytes and returns its descriptor. kInvalidArgument: more than
// ARCTRACE_BPF_SIZE_MAX. Other codes (kPermissionDenied, kUnimplemented ...) come from
// the kernel.
absl::StatusOr<int> create_map(uint64_t size);

// Measures what a process takes to map a map of `size` bytes, and to take the mapping
// down: a cost of ARCTRACE_HOOK_PROCESS. Takes 0.1 ms for each MiB. nullopt: it can't be
// mapped, or the size is less than a MiB.
std::optional<arctrace_hook_cost> measure_map_cost(int map, uint64_t size);

// Pins the map under a new name in kMapDirectory, which it mounts if necessary, and
// returns the path. `owner`: the user who may use the map; -1: this one. Members of
// `group` may use it too; -1: only the user.
absl::StatusOr<std::string> pin_map(int map, int64_t owner, int64_t group);

// Allocates a buffer's memory in huge pages, which takes a tenth of the time that small
// pages take. Buffer::create() calls it.
//
// `fd` is an empty file in shared memory that map_for_huge_pages() has mapped at `base`.
// The part of a huge page at its end is not allocated. Returns 0, or the errno because of
// which some or all of it has no huge pages; the caller then allocates small ones.
int allocate_huge_pages(int fd, std::byte* base, uint64_t size);

}  // namespace arctrace::recorder
