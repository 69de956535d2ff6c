#include "src/writer/full_blocks.hpp"

#include "src/base/shared_atomics.hpp"
#include "src/process/session.hpp"
#include "src/process/work_claims.hpp"
#include "src/protocol/block_counts.hpp"
#include "src/writer/definitions.hpp"

namespace arctrace {
namespace {

arctrace_shim_full_block* full_block_hook;  // null: there is none

// In overwrite mode the buffer is always full, and nobody has to keep up. A hint: the
// counts are of two moments, and other programs may write anything there.
bool recorder_is_behind() {
  const Geometry& geometry = session.view.geometry();
  return geometry.mode != ARCTRACE_MODE_OVERWRITE &&
         blocks_in_use<IpcAtomics>(session.view.control()) >= geometry.block_count / 2;
}

void define_switched_off(const uint64_t* functions, uint32_t count, uint64_t ticks) {
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

}  // namespace

void set_full_block_hook(arctrace_shim_full_block* hook) { full_block_hook = hook; }

void look_at_full_block(const ThreadState& state, const ProcessState& process,
                        uint64_t ticks) {
  if (full_block_hook == nullptr || !state.block.is_open || !recorder_is_behind()) return;
  if (!claim_work(Work::kLookAtFullBlock, process, state.slot.writer)) return;
  std::byte* begin =
      session.view.block(state.block.taken.index) + ARCTRACE_BLOCK_HEADER_SIZE;
  const std::byte* end = state.block.pos;
  uint32_t count;
  do {
    uint64_t functions[ARCTRACE_SHIM_SWITCHED_OFF_MAX];
    count = full_block_hook(begin, end, functions);
    if (count != 0) define_switched_off(functions, count, ticks);
  } while (count == ARCTRACE_SHIM_SWITCHED_OFF_MAX);
  // With it goes the table in which the hook counts.
  end_work(Work::kLookAtFullBlock);
}

}  // namespace arctrace
