// Chooses a buffer's geometry by the options, and its size by the memory that there is.
#include "src/recorder/buffer/buffer_fit.hpp"

#include <absl/strings/str_cat.h>

#include <algorithm>

#include "src/recorder/buffer/available_memory.hpp"

namespace arctrace::recorder {
namespace {

// The memory that a recorder needs beside its buffer, with what the kernel counts for it.
constexpr uint64_t kRecorderNeeds = uint64_t{16} << 20;
constexpr uint64_t kUnaskedPart = 4;  // a quarter

// The number of slots by default: as many threads as a buffer may have to serve, if small
// buffers are to stay small, because a slot takes 256 bytes.
uint32_t usual_slots(uint32_t block_count) {
  constexpr uint32_t kForEachBlock = 32;
  constexpr uint32_t kLeast = 4096, kMost = 32768;
  return std::clamp(std::min(block_count, kMost) * kForEachBlock, kLeast, kMost);
}

// Small buffers have small blocks: a process that begins needs a block for its
// definitions, and a thread that writes much one for its records.
uint32_t usual_block_size(uint64_t buffer_size) {
  constexpr uint32_t kLeast = 8u << 10, kMost = kUsualBlockSize;
  constexpr uint32_t kBlocks = 64;
  uint32_t size = kMost;
  while (size > kLeast && buffer_size / size < kBlocks) size /= 2;
  return size;
}

}  // namespace

absl::StatusOr<Geometry> plan_buffer(const BufferOptions& options) {
  Geometry geometry;
  geometry.cpu_count = options.cpu_count;
  geometry.block_size =
      options.block_size.value_or(usual_block_size(options.buffer_size));
  geometry.mode = options.mode;
  geometry.scope = options.scope;
  geometry.clock = options.clock;
  geometry.stamps = options.stamps;
  const uint64_t blocks =
      geometry.block_size == 0 ? 0 : options.buffer_size / geometry.block_size;
  geometry.block_count = blocks <= ARCTRACE_BLOCK_COUNT_MAX
                             ? static_cast<uint32_t>(blocks)
                             : ARCTRACE_BLOCK_COUNT_MAX + 1;
  geometry.slot_count = options.slot_count.value_or(usual_slots(geometry.block_count));
  if (const GeometryError error = layout_geometry(geometry);
      error != GeometryError::kNone) {
    return absl::InvalidArgumentError(absl::StrCat(describe(error), " (buffer size ",
                                                   options.buffer_size, ", block size ",
                                                   geometry.block_size, ")"));
  }
  return geometry;
}

MemorySources find_memory_sources(const BufferOptions& options) {
  return {machine_memory(), cgroup_memory(),
          options.in_kernel ? AvailableMemory() : directory_space(options.directory)};
}

absl::StatusOr<BufferFit> fit_to_memory(BufferOptions& options,
                                        const MemorySources& sources) {
  BufferFit fit;
  if (!options.in_kernel && !is_in_memory(options.directory)) {
    if (!options.is_directory_asked) {
      return absl::FailedPreconditionError(absl::StrCat(
          "no buffer in ", options.directory, ": it is on a disk, not in memory",
          directory_remedies(options.directory, false), ", or this one if you name it"));
    }
    fit.warning =
        absl::StrCat(options.directory,
                     " is on a disk: the kernel writes the buffer out again and "
                     "again, and a program may wait for that at any record");
  }
  // The source with the least memory, of which the buffer may have a quarter.
  AvailableMemory bound;
  const auto take = [&](uint64_t whole, const std::string& name) {
    if (whole / kUnaskedPart < bound.free) {
      bound = {whole, whole / kUnaskedPart, name};
    }
  };
  take(sources.machine.total, sources.machine.name);
  take(sources.cgroup.least_total.total, sources.cgroup.least_total.name);
  take(sources.directory.free, sources.directory.name);
  absl::StatusOr<Geometry> plan = plan_buffer(options);
  if (!plan.ok()) return plan.status();
  const uint64_t usual = options.buffer_size;
  if (!options.is_size_asked && plan->total_size > bound.free) {
    // The size is halved, so that it stays a number that people recognise. If that is not
    // enough, the buffer gets fewer slots than some programs have threads.
    constexpr uint64_t kBlocksMin = 8;
    constexpr uint32_t kSlotsMin = 512;
    const uint64_t least = kBlocksMin * options.block_size.value_or(kUsualBlockSize);
    BufferOptions smaller = options;
    while (plan->total_size > bound.free && smaller.buffer_size / 2 >= least) {
      smaller.buffer_size /= 2;
      plan = plan_buffer(smaller);
      if (!plan.ok()) return plan.status();
    }
    if (plan->total_size > bound.free && !smaller.slot_count) {
      smaller.slot_count = kSlotsMin;
      plan = plan_buffer(smaller);
      if (!plan.ok()) return plan.status();
    }
    if (plan->total_size > bound.free) {
      return absl::ResourceExhaustedError(absl::StrCat(
          "no room for a buffer: the smallest one is more than a quarter of ", bound.name,
          directory_remedies(options.directory, true), "; -b sets a size all the same"));
    }
    options = smaller;
    fit.size = absl::StrCat("the buffer has ", size_text(options.buffer_size), ", not ",
                            size_text(usual), ", to take at most a quarter of ",
                            bound.name, "; -b sets another size");
  }
  const uint64_t needed = plan->total_size + kRecorderNeeds;
  const AvailableMemory& cgroup = sources.cgroup.least_free;
  if (needed > cgroup.free) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "no room for a buffer of ", size_text(plan->total_size), ": of ", cgroup.name,
        ", ", size_text(cgroup.free), " are free, and the recorder needs ",
        size_text(kRecorderNeeds),
        " beside the buffer; -b sets a smaller size; for a container: --memory"));
  }
  return fit;
}

}  // namespace arctrace::recorder
