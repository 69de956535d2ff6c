#include "src/writer/full_blocks.hpp"

#include "src/base/shared_atomics.hpp"
#include "src/process/session.hpp"
#include "src/writer/definitions.hpp"

namespace arctrace {
namespace {

arctrace_shim_full_block* full_block_hook;  // null: there is none

// The session identity of the process of whose threads one looks at its block; 0: none
// does. In a fork child it may be the parent's, of a thread that the child does not have.
// If a signal handler jumps out of a look, nobody looks any more.
uint32_t looking;

// In overwrite mode the buffer is always full, and nobody has to keep up. A hint: the two
// words are of two moments, and other programs may write anything there.
bool recorder_is_behind() {
  const Geometry& geometry = session.view.geometry();
  arctrace_control& control = session.view.control();
  return geometry.mode != ARCTRACE_MODE_OVERWRITE &&
         IpcAtomics::load_relaxed(control.taken) -
                 IpcAtomics::load_relaxed(control.freed) >=
             geometry.block_count / 2;
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
  uint32_t last = IpcAtomics::load_relaxed(looking);
  if (last == process.id ||
      !IpcAtomics::compare_exchange_acq_rel(looking, last, process.id)) {
    return;
  }
  std::byte* begin =
      session.view.block(state.block.taken.index) + ARCTRACE_BLOCK_HEADER_SIZE;
  const std::byte* end = state.block.pos;
  uint32_t count;
  do {
    uint64_t functions[ARCTRACE_SHIM_SWITCHED_OFF_MAX];
    count = full_block_hook(begin, end, functions);
    if (count != 0) define_switched_off(functions, count, ticks);
  } while (count == ARCTRACE_SHIM_SWITCHED_OFF_MAX);
  // The next thread that looks acquires it with its compare-exchange: the table in which
  // the hook counts.
  IpcAtomics::store_release(looking, uint32_t{0});
}

}  // namespace arctrace
