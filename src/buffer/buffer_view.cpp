// Computes the layout of a buffer, and checks that of a header that another process
// wrote.
#include "src/buffer/buffer_view.hpp"

namespace arctrace {

namespace {

constexpr uint64_t kPage = 4096;

GeometryError check_counts(const Geometry& g) {
  if (g.block_size < ARCTRACE_BLOCK_SIZE_MIN || g.block_size > ARCTRACE_BLOCK_SIZE_MAX ||
      g.block_size % ARCTRACE_BLOCK_ALIGN != 0) {
    return GeometryError::kBlockSize;
  }
  if (g.block_count < 2 || g.block_count > ARCTRACE_BLOCK_COUNT_MAX) {
    return GeometryError::kBlockCount;
  }
  if (g.slot_count < 1 || g.slot_count > ARCTRACE_SLOT_COUNT_MAX) {
    return GeometryError::kSlotCount;
  }
  if (g.cpu_count > ARCTRACE_CPU_COUNT_MAX) return GeometryError::kCpuCount;
  if (g.mode < ARCTRACE_MODE_DROP || g.mode > ARCTRACE_MODE_STOP ||
      g.scope < ARCTRACE_SCOPE_THREAD || g.scope > ARCTRACE_SCOPE_ADAPTIVE ||
      g.clock < ARCTRACE_CLOCK_TSC || g.clock > ARCTRACE_CLOCK_MONOTONIC ||
      g.stamps > ARCTRACE_STAMPS_ORDER) {
    return GeometryError::kEnum;
  }
  return GeometryError::kNone;
}

}  // namespace

GeometryError layout_geometry(Geometry& g) {
  if (const GeometryError error = check_counts(g); error != GeometryError::kNone) {
    return error;
  }
  // The counts are bounded, so none of this can overflow 64 bits.
  g.slots_offset =
      ARCTRACE_CPUS_OFFSET + uint64_t{g.cpu_count} * sizeof(arctrace_cpu_slot);
  const uint64_t slots_end = g.slots_offset + uint64_t{g.slot_count} * ARCTRACE_SLOT_SIZE;
  g.blocks_offset = (slots_end + kPage - 1) / kPage * kPage;
  const uint64_t end = g.blocks_offset + uint64_t{g.block_count} * g.block_size;
  g.total_size = (end + kPage - 1) / kPage * kPage;
  return GeometryError::kNone;
}

GeometryError read_geometry_untrusted(const arctrace_session_header& h,
                                      uint64_t expected_magic, uint64_t available,
                                      Geometry& out) {
  if (h.magic != expected_magic) return GeometryError::kMagic;
  if (h.byte_order != ARCTRACE_BYTE_ORDER) return GeometryError::kByteOrder;
  const uint64_t known = h.magic == ARCTRACE_FILE_MAGIC
                             ? ARCTRACE_FEATURE_CHECKSUMS | ARCTRACE_FEATURE_CLOCK_WORD
                             : ARCTRACE_FEATURE_CLOCK_WORD;
  if (h.version_major != ARCTRACE_VERSION_MAJOR || (h.features_required & ~known) != 0) {
    return GeometryError::kVersion;
  }
  Geometry g;
  g.slot_count = h.slot_count;
  g.cpu_count = h.cpu_count;
  g.block_size = h.block_size;
  g.block_count = h.block_count;
  g.mode = h.mode;
  g.scope = h.scope;
  g.clock = h.clock;
  // A header that lacks the feature may be of a version that had no such field.
  const bool has_word = (h.features_required & ARCTRACE_FEATURE_CLOCK_WORD) != 0;
  if (has_word) g.stamps = h.stamps;
  if (const GeometryError error = layout_geometry(g); error != GeometryError::kNone) {
    return error;
  }
  // Given counts have exactly one layout, so any difference is damage.
  if (h.header_size != ARCTRACE_HEADER_SIZE || h.slot_size != ARCTRACE_SLOT_SIZE ||
      h.cpu_slot_size != sizeof(arctrace_cpu_slot) ||
      h.block_header_size != ARCTRACE_BLOCK_HEADER_SIZE ||
      h.slots_offset != g.slots_offset || h.blocks_offset != g.blocks_offset ||
      h.total_size != g.total_size) {
    return GeometryError::kLayout;
  }
  if (g.total_size > available) return GeometryError::kSize;
  out = g;
  return GeometryError::kNone;
}

const char* describe(GeometryError error) {
  switch (error) {
    case GeometryError::kNone:
      return "no error";
    case GeometryError::kMagic:
      return "not an arctrace buffer (wrong magic)";
    case GeometryError::kVersion:
      return "made by another version of arctrace";
    case GeometryError::kByteOrder:
      return "made on a machine of another byte order";
    case GeometryError::kBlockSize:
      return "block size must be a multiple of 64 from 384 bytes to 16 MiB";
    case GeometryError::kBlockCount:
      return "block count must be from 2 to 16777216";
    case GeometryError::kSlotCount:
      return "slot count must be from 1 to 65535";
    case GeometryError::kCpuCount:
      return "CPU count must be at most 4096";
    case GeometryError::kEnum:
      return "unknown mode, scope, clock or stamps";
    case GeometryError::kLayout:
      return "offsets and sizes in the header do not fit together";
    case GeometryError::kSize:
      return "the buffer is shorter than its header says";
  }
  return "unknown error";
}

}  // namespace arctrace
