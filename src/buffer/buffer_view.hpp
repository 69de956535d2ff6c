// A mapped buffer and the private copy of its geometry, which bounds every index into it.
// It owns nothing; writers, recorder and readers pass it by value.
#pragma once

#include <arctrace/format.h>

#include <cstddef>
#include <cstdint>

#include "src/buffer/geometry.hpp"

namespace arctrace {

class BufferView {
 public:
  constexpr BufferView() = default;
  BufferView(std::byte* base, const Geometry& geometry)
      : base_(base), geometry_(geometry) {}

  const Geometry& geometry() const { return geometry_; }
  std::byte* base() const { return base_; }

  arctrace_control& control() const {
    return *reinterpret_cast<arctrace_control*>(base_ + ARCTRACE_CONTROL_OFFSET);
  }
  // REQUIRES: cpu < geometry().cpu_count.
  arctrace_cpu_slot& cpu_slot(uint32_t cpu) const {
    return *reinterpret_cast<arctrace_cpu_slot*>(
        base_ + ARCTRACE_CPUS_OFFSET + uint64_t{cpu} * sizeof(arctrace_cpu_slot));
  }
  // REQUIRES: index < geometry().slot_count.
  arctrace_writer_slot& slot(uint32_t index) const {
    return *reinterpret_cast<arctrace_writer_slot*>(base_ + geometry_.slots_offset +
                                                    uint64_t{index} * ARCTRACE_SLOT_SIZE);
  }
  // REQUIRES: index < geometry().block_count.
  std::byte* block(uint32_t index) const {
    return base_ + geometry_.blocks_offset + uint64_t{index} * geometry_.block_size;
  }
  arctrace_block_header& block_header(uint32_t index) const {
    return *reinterpret_cast<arctrace_block_header*>(block(index));
  }

 private:
  std::byte* base_ = nullptr;
  Geometry geometry_;
};

// The 32-bit word at a record's start, or inside its body.
inline uint32_t& word_at(std::byte* address) {
  return *reinterpret_cast<uint32_t*>(address);
}

}  // namespace arctrace
