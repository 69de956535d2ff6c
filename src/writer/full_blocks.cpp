#include "src/writer/full_blocks.hpp"

#include "src/base/shared_atomics.hpp"
#include "src/process/session.hpp"
#include "src/writer/definitions.hpp"

namespace arctrace {
namespace {

arctrace_shim_full_block* full_block_hook;  // null: there is none

// In overwrite mode the buffer is always full, and nobody has to keep up.
bool recorder_is_behind() {
  const Geometry& geometry = session.view.geometry();
  arctrace_control& control = session.view.control();
  return geometry.mode != ARCTRACE_MODE_OVERWRITE &&
         IpcAtomics::load_relaxed(control.taken) -
                 IpcAtomics::load_relaxed(control.freed) >=
             geometry.block_count / 2;
}

}  // namespace

void set_full_block_hook(arctrace_shim_full_block* hook) { full_block_hook = hook; }

void look_at_full_block(const ThreadState& state, uint64_t ticks) {
  if (full_block_hook == nullptr || !state.block.is_open || !recorder_is_behind()) return;
  const std::byte* block = session.view.block(state.block.taken.index);
  uint64_t functions[ARCTRACE_SHIM_SWITCHED_OFF_MAX];
  const uint32_t count =
      full_block_hook(block + ARCTRACE_BLOCK_HEADER_SIZE, state.block.pos, functions);
  if (count == 0) return;
  const arctrace_patches_body body{.process = 0,
                                   .verdict = ARCTRACE_PATCH_FLOODED,
                                   .count = count,
                                   .listed = count,
                                   .reserved = 0};
  const BodyPart parts[] = {
      {&body, sizeof body},
      {functions, count * static_cast<uint32_t>(sizeof *functions)}};
  add_definition(ARCTRACE_TYPE_PATCHES, parts, 2,
                 offsetof(arctrace_patches_body, reserved), ticks);
}

}  // namespace arctrace
