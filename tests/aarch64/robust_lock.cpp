// Instead of src/robust_lock.cpp where an emulator has no robust lists (qemu-user: get_
// and set_robust_list are not implemented): who started us marks the lock when we are
// gone.
#include "src/robust_lock.hpp"

#include "src/confinement.hpp"
#include "src/raw_syscall.hpp"
#include "src/shared_atomics.hpp"

namespace arctrace {
namespace {

thread_local constinit uint32_t libc_tid = 0;

}  // namespace

bool has_robust_list() { return true; }

void begin_libc_thread(uint32_t tid) { libc_tid = tid; }

uint32_t thread_id() { return may_call_kernel() ? sys::gettid() : libc_tid; }

bool robust_lock(RobustWord word, uint32_t expected, uint32_t tid) {
  return IpcAtomics::compare_exchange_acq_rel(word.lock, expected, tid);
}

}  // namespace arctrace
