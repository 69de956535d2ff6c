// Sizes and offsets of one buffer in private memory. The creator computes them; all
// others copy them once from the untrusted session header and check them.
#pragma once

#include <arctrace/format.h>

#include <cstdint>

namespace arctrace {

struct Geometry {
  uint32_t slot_count = 0;
  uint32_t cpu_count = 0;
  uint32_t block_size = 0;  // bytes, header included
  uint32_t block_count = 0;
  uint64_t slots_offset = 0;  // bytes from the buffer's start
  uint64_t blocks_offset = 0;
  uint64_t total_size = 0;
  uint32_t mode = ARCTRACE_MODE_DROP;
  uint32_t scope = ARCTRACE_SCOPE_THREAD;
  uint32_t clock = ARCTRACE_CLOCK_MONOTONIC;
};

enum class GeometryError : uint8_t {
  kNone,
  kMagic,       // not an arctrace buffer
  kVersion,     // another major version, or an unknown required feature
  kByteOrder,   // made on a machine of another byte order
  kBlockSize,   // out of range, or not a multiple of 64
  kBlockCount,  // none, or too many
  kSlotCount,
  kCpuCount,
  kEnum,    // unknown mode, scope or clock
  kLayout,  // offsets or sizes do not fit together
  kSize,    // larger than the mapping
};

// Checks the counts and fills in the offsets and the total size.
GeometryError layout_geometry(Geometry& geometry);

// Reads the geometry out of a private copy of a header that another process wrote.
// `available`: how many bytes of the buffer exist.
GeometryError read_geometry_untrusted(const arctrace_session_header& header,
                                      uint64_t expected_magic, uint64_t available,
                                      Geometry& out);

// A sentence without full stop for each error.
const char* describe(GeometryError error);

// The longest record that a block can hold, in bytes.
inline uint32_t record_length_max(const Geometry& geometry) {
  const uint32_t space = geometry.block_size - ARCTRACE_BLOCK_HEADER_SIZE;
  return space < ARCTRACE_RECORD_LENGTH_MAX ? space : ARCTRACE_RECORD_LENGTH_MAX;
}

}  // namespace arctrace
