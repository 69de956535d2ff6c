// Replaces src/os/robust_lock.cpp where an emulator has no robust lists (qemu-user does
// not implement get_ and set_robust_list): the process that started us marks the lock
// when we are gone.
#include "src/os/robust_lock.hpp"

#include "src/base/shared_atomics.hpp"

namespace arctrace {

bool has_robust_list() { return true; }

void find_list_of_libc_thread() {}

void follow_robust_list() {}

bool robust_lock(RobustWord word, uint32_t expected, uint32_t tid) {
  return IpcAtomics::compare_exchange_acq_rel(word.lock, expected, tid);
}

}  // namespace arctrace
