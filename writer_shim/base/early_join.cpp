// Joins the session before the shim's start.
#include "writer_shim/base/early_join.hpp"

#include <unistd.h>

#include <cstdint>

#include "src/api/shim_interface.h"
#include "src/base/shared_atomics.hpp"

namespace arctrace::shim {

// This is a function of its own, so that the hooks' paths have no more than a call of it.
void join_early() {
  static uint32_t tried;
  // `environ` is null until libc has started; the loader calls malloc, for one, before
  // that.
  if (IpcAtomics::load_relaxed(tried) != 0 || environ == nullptr) return;
  IpcAtomics::store_relaxed(tried, uint32_t{1});
  arctrace_attach(nullptr);
}

}  // namespace arctrace::shim
