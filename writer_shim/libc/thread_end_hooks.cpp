// pthread_exit() leaves the frames of its thread without a word. A key's destructor,
// which libc calls when they are gone, says so. The key is made by the first such call,
// and its value needs no memory: a thread may end itself in a signal handler, anywhere.
#include "writer_shim/libc/thread_end_hooks.hpp"

#include <pthread.h>
#include <threads.h>

#include "writer_shim/libc/hook.hpp"

namespace arctrace::shim {
namespace {

// Before glibc 2.34 these are in libpthread, which a program need not have.
RealFunction<void(void*)> real_pthread_exit("pthread_exit");
RealFunction<void(int)> real_thrd_exit("thrd_exit");
RealFunction<int(pthread_key_t*, void (*)(void*))> create_key("pthread_key_create");
RealFunction<int(pthread_key_t)> delete_key("pthread_key_delete");
RealFunction<int(pthread_key_t, const void*)> set_specific("pthread_setspecific");

// Values of keys from this one on are in memory that libc allocates.
constexpr pthread_key_t kInlineKeys = 32;

uint32_t key_after;  // the key + 1; 0: there is none yet

void frames_are_gone(void*) { arctrace_shim_thread_unwound(); }

// 0: there is none.
uint32_t thread_end_key() {
  uint32_t known = IpcAtomics::load_acquire(key_after);
  if (known != 0) return known;
  auto* create = create_key.get();
  auto* remove = delete_key.get();
  pthread_key_t key = 0;
  if (create == nullptr || remove == nullptr || create(&key, frames_are_gone) != 0) {
    return 0;
  }
  if (key < kInlineKeys &&
      IpcAtomics::compare_exchange_acq_rel(key_after, known, uint32_t{key} + 1)) {
    return key + 1;
  }
  remove(key);
  return known;
}

void expect_end() {
  auto* set = set_specific.get();
  if (set == nullptr || !has_session()) return;
  if (const uint32_t key = thread_end_key(); key != 0) set(key - 1, &key_after);
}

}  // namespace

void prepare_thread_end_hooks() {
  real_pthread_exit.get();
  real_thrd_exit.get();
  create_key.get();
  delete_key.get();
  set_specific.get();
}

}  // namespace arctrace::shim

using namespace arctrace::shim;

ARCTRACE_HOOK __attribute__((noreturn)) void pthread_exit(void* result) {
  expect_end();
  if (auto* real = real_pthread_exit.get(); real != nullptr) real(result);
  __builtin_trap();
}

ARCTRACE_HOOK __attribute__((noreturn)) void thrd_exit(int result) {
  expect_end();
  if (auto* real = real_thrd_exit.get(); real != nullptr) real(result);
  __builtin_trap();
}
