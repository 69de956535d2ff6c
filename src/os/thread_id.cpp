#include "src/os/thread_id.hpp"

#include "src/base/raw_syscall.hpp"
#include "src/os/kernel_use.hpp"

namespace arctrace {
namespace {

// 0: libc did not begin the thread, or began it before the shim was loaded.
thread_local constinit uint32_t libc_thread_id = 0;

}  // namespace

void set_libc_thread_id(uint32_t tid) { libc_thread_id = tid; }

uint32_t thread_id() { return may_call_kernel() ? sys::gettid() : libc_thread_id; }

}  // namespace arctrace
