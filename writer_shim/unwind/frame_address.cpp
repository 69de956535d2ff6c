#include "writer_shim/unwind/frame_address.hpp"

#include "src/base/shared_atomics.hpp"
#include "writer_shim/arch/machine.hpp"

namespace arctrace::shim {
namespace {

uintptr_t libgcc_function;

uintptr_t frame_address(void* context) {
  using Function = uintptr_t (*)(void* context);
  const auto function =
      reinterpret_cast<Function>(IpcAtomics::load_relaxed(libgcc_function));
  return function(context) & ~(machine::kStackAlignment - 1);
}

}  // namespace

uintptr_t own_frame_address(uintptr_t target) {
  IpcAtomics::store_relaxed(libgcc_function, target);
  return reinterpret_cast<uintptr_t>(frame_address);
}

}  // namespace arctrace::shim
