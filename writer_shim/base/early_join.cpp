// A function of its own, so that the hooks' paths hold no more than a call of it.
#include "writer_shim/base/early_join.hpp"

#include <unistd.h>

#include "src/api/shim_interface.h"
#include "src/base/shared_atomics.hpp"

namespace arctrace::shim {

void join_early() {
  static uint32_t tried;
  // `environ` is null until libc has started; malloc, for one, is called by the loader
  // before that.
  if (IpcAtomics::load_relaxed(tried) != 0 || environ == nullptr) return;
  IpcAtomics::store_relaxed(tried, uint32_t{1});
  arctrace_attach(nullptr);
}

}  // namespace arctrace::shim
