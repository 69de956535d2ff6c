// Records when threads end. Nothing of ours is called when a thread's routine returns, or
// when pthread_exit() or a cancellation ends its frames. So each thread has a value of a
// key, whose destructor libc calls when all frames are gone. The value needs no memory: a
// thread may end itself in a signal handler, anywhere.
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <threads.h>

#include "writer_shim/libc/hook.hpp"

namespace arctrace::shim {
namespace {

// Before glibc 2.34 these functions are in libpthread, which a program need not have.
RealFunction<void(void*)> real_pthread_exit("pthread_exit");
RealFunction<void(int)> real_thrd_exit("thrd_exit");
RealFunction<int(pthread_key_t*, void (*)(void*))> create_key("pthread_key_create");
RealFunction<int(tss_t*, tss_dtor_t)> create_c11_key("tss_create");
RealFunction<int(pthread_key_t)> delete_key("pthread_key_delete");
RealFunction<int(pthread_key_t, const void*)> set_specific("pthread_setspecific");

// The key: the last one whose values libc has no memory allocated for. The program's own
// keys have the numbers that they would have without this one, until it makes as many.
constexpr pthread_key_t kKey = 31;

// Whether the key is ours. The program has it if it makes so many keys that it needs it.
enum KeyState : uint32_t { kNotMade, kMade, kNotOurs };
uint32_t key_state;

// libc calls destructors in several rounds, as long as there are values. The thread ends
// in the last one, after the destructors of the program's keys that have lower numbers.
// The value of the key points to the round that comes.
constexpr uint32_t kRounds = PTHREAD_DESTRUCTOR_ITERATIONS;
char rounds[kRounds];

void set_value(char* round) {
  if (auto* set = set_specific.get(); set != nullptr) set(kKey, round);
}

void thread_ends(void* value) {
  if (!has_session()) return;
  char* const round = static_cast<char*>(value);
  // What the program's destructors call has a stack of its own.
  if (round == rounds) arctrace_shim_thread_unwound();
  if (round != &rounds[kRounds - 1]) {
    set_value(round + 1);
    return;
  }
  arctrace_shim_thread_unwound();
  arctrace_shim_thread_end();
}

// Makes keys up to ours; false: the program has it. The others are given back.
bool make_key() {
  auto* create = create_key.get();
  auto* remove = delete_key.get();
  if (create == nullptr || remove == nullptr || set_specific.get() == nullptr) {
    return false;
  }
  // libc gives the lowest number that is free.
  pthread_key_t others[kKey];
  uint32_t count = 0;
  pthread_key_t key = 0;
  bool is_made = false;
  while (create(&key, thread_ends) == 0) {
    is_made = key == kKey;
    if (key >= kKey || count == kKey) break;
    others[count++] = key;
  }
  if (key > kKey) remove(key);
  while (count != 0) remove(others[--count]);
  return is_made;
}

// Gives the key up for the program's sake; false: it was not ours.
bool give_key_up() {
  uint32_t state = kMade;
  if (!IpcAtomics::compare_exchange_acq_rel(key_state, state, uint32_t{kNotOurs})) {
    return false;
  }
  delete_key.get()(kKey);
  return true;
}

}  // namespace

void make_thread_end_key() {
  if (!has_session()) return;
  // Only one thread of ours makes keys. If others need ours meanwhile, they have no
  // value. Keys that the program makes meanwhile get higher numbers.
  uint32_t state = kNotMade;
  if (!IpcAtomics::compare_exchange_acq_rel(key_state, state, uint32_t{kNotOurs})) return;
  if (make_key()) IpcAtomics::store_release(key_state, uint32_t{kMade});
}

void watch_thread_end() {
  if (IpcAtomics::load_acquire(key_state) == kMade && has_session()) set_value(rounds);
}

void watch_older_threads() {
  make_thread_end_key();
  arctrace_shim_set_thread_attached(watch_thread_end);
  watch_thread_end();  // the calling thread, which has joined the session for the others
}

void prepare_thread_end_hooks() {
  real_pthread_exit.get();
  real_thrd_exit.get();
  create_key.get();
  create_c11_key.get();
  delete_key.get();
  set_specific.get();
}

}  // namespace arctrace::shim

using namespace arctrace::shim;

ARCTRACE_HOOK __attribute__((noreturn)) void pthread_exit(void* result) {
  make_thread_end_key();
  watch_thread_end();
  if (auto* real = real_pthread_exit.get(); real != nullptr) real(result);
  __builtin_trap();
}

ARCTRACE_HOOK __attribute__((noreturn)) void thrd_exit(int result) {
  make_thread_end_key();
  watch_thread_end();
  if (auto* real = real_thrd_exit.get(); real != nullptr) real(result);
  __builtin_trap();
}

// A program that makes all keys there are has ours, too.
ARCTRACE_HOOK int pthread_key_create(pthread_key_t* key,
                                     void (*destructor)(void*)) noexcept {
  auto* real = create_key.get();
  if (real == nullptr) return ENOSYS;
  const int error = real(key, destructor);
  return error == EAGAIN && give_key_up() ? real(key, destructor) : error;
}

ARCTRACE_HOOK int tss_create(tss_t* key, tss_dtor_t destructor) {
  auto* real = create_c11_key.get();
  if (real == nullptr) return thrd_error;
  const int result = real(key, destructor);
  return result != thrd_success && give_key_up() ? real(key, destructor) : result;
}
