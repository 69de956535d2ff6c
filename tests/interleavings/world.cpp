#include "tests/interleavings/world.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>

#include "src/buffer/buffer_view.hpp"

namespace arctrace::testing {

World::World(arctrace_mode mode, uint32_t block_count, uint32_t slot_count,
             uint32_t cpu_count) {
  Geometry geometry;
  geometry.mode = mode;
  geometry.block_size = kBlockSize;
  geometry.block_count = block_count;
  geometry.slot_count = slot_count;
  geometry.cpu_count = cpu_count;
  REQUIRE(layout_geometry(geometry) == GeometryError::kNone);
  memory_.assign(geometry.total_size / 8, 0);
  view_ = BufferView(reinterpret_cast<std::byte*>(memory_.data()), geometry);
  arctrace_control& control = view_.control();
  control.gate = ARCTRACE_GATE_KERNEL;
  control.slot_next = slot_count;
  control.writer_next = slot_count + 1;
  for (uint32_t i = 0; i < slot_count; ++i) {
    slot(i).lock = slot(i).tid = slot(i).writer = slot(i).process = i + 1;
  }
  for (uint32_t i = 0; i < block_count; ++i) {
    std::memset(view_.block(i), 0xFF, kBlockSize);
    view_.block_header(i).state = BlockState{0, 0, ARCTRACE_PHASE_FREE}.pack();
    view_.block_header(i).next = kBlockSize;
  }
  image_ = memory_;
}

void World::restore() {
  std::memcpy(memory_.data(), image_.data(), image_.size() * 8);
  committed.clear();
  collected.clear();
  handouts.assign(view_.geometry().slot_count, {});
  known.assign(view_.geometry().slot_count, {});
  lost = torn = 0;
  damage.clear();
}

std::string World::fault(bool is_whole) const {
  if (!damage.empty()) return damage;
  std::vector<uint64_t> wrote = committed;
  std::vector<uint64_t> found = collected;
  std::sort(wrote.begin(), wrote.end());
  std::sort(found.begin(), found.end());
  if (std::adjacent_find(found.begin(), found.end()) != found.end())
    return "a record twice";
  if (!std::includes(wrote.begin(), wrote.end(), found.begin(), found.end())) {
    return "a record that was not committed";
  }
  if (view_.geometry().mode != ARCTRACE_MODE_OVERWRITE && wrote != found) {
    return "a committed record is missing";
  }
  for (const std::vector<uint64_t>& of_slot : handouts) {
    if (!std::is_sorted(of_slot.begin(), of_slot.end())) {
      return "a writer's later record in an earlier block";
    }
  }
  uint64_t used = 0;
  for (uint32_t i = 0; i < view_.geometry().block_count; ++i) {
    const arctrace_block_header& header = view_.block_header(i);
    const uint32_t phase = BlockState::unpack(header.state).phase;
    if (phase != ARCTRACE_PHASE_FREE) ++used;
    if (phase != ARCTRACE_PHASE_FREE && phase != ARCTRACE_PHASE_SHARED) {
      return "a block is left in phase " + std::to_string(phase);
    }
    if (phase == ARCTRACE_PHASE_FREE && header.next < kBlockSize) {
      return "a free block takes reservations";
    }
    const auto* bytes = reinterpret_cast<const unsigned char*>(view_.block(i));
    if (phase == ARCTRACE_PHASE_FREE &&
        !std::all_of(bytes + 64, bytes + kBlockSize,
                     [](unsigned char byte) { return byte == 0xFF; })) {
      return "a free block is not empty";
    }
  }
  // The equality is only approximate after deaths, and in overwrite mode `freed` counts
  // something else.
  const arctrace_control& control = view_.control();
  if (is_whole && view_.geometry().mode != ARCTRACE_MODE_OVERWRITE &&
      control.taken - control.freed != used) {
    return "the counts of blocks taken and freed do not give those in use";
  }
  bool is_named = false;
  for (uint32_t i = 0; i < view_.geometry().slot_count; ++i) {
    for (const uint32_t name : slot(i).active) is_named |= name != 0;
  }
  for (uint32_t i = 0; i < view_.geometry().cpu_count; ++i) {
    for (const uint32_t name : view_.cpu_slot(i).active) is_named |= name != 0;
  }
  return is_named ? "a name is left in active[]" : "";
}

BlockIdentity identity_of(uint32_t slot, arctrace_block_form form) {
  return {form, ARCTRACE_CLASS_DATA, slot + 1, slot + 1, slot + 1, slot + 1, 0, 0};
}

}  // namespace arctrace::testing
