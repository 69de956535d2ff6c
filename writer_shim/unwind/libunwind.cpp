#include "writer_shim/unwind/libunwind.hpp"

#include "src/base/shared_atomics.hpp"
#include "src/base/text.hpp"
#include "writer_shim/arch/call_stubs.h"
#include "writer_shim/arch/machine.hpp"

arctrace_unwind_words arctrace_unwinding;

namespace arctrace::shim {

void look_for_libunwind(const char* path) {
  if constexpr (machine::kHasSecondFrame) {
    if (path == nullptr || !starts_with(file_name(path), "libunwind")) return;
    IpcAtomics::store_relaxed(arctrace_unwinding.second_frame,
                              reinterpret_cast<uintptr_t>(arctrace_second_frame));
  }
}

}  // namespace arctrace::shim
