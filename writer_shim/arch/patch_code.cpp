#include "writer_shim/arch/patch_code.hpp"

#include "src/base/shared_atomics.hpp"
#include "src/shim_protocol/patch_table.hpp"

namespace arctrace::shim {
namespace {

constinit AddressRange images[kPatchedModulesMax]{};
uint32_t image_count;

}  // namespace

bool note_patch_code(AddressRange image) {
  if (image_count == kPatchedModulesMax) return false;
  images[image_count] = image;
  // Release: a thread that sees the number sees the image.
  IpcAtomics::store_release(image_count, image_count + 1);
  return true;
}

bool is_patch_code(uintptr_t address) {
  const uint32_t count = IpcAtomics::load_acquire(image_count);
  for (uint32_t i = 0; i < count; ++i) {
    if (images[i].contains(address)) return true;
  }
  return false;
}

}  // namespace arctrace::shim
