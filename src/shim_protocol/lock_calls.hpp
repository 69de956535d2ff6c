// The functions of libc that are called about locks: those of which the reader's view of
// locks makes something (reader/analysis/lock_functions.cpp). The entry of each call has
// the locks' addresses.
#pragma once

#include <arctrace/format.h>

#include <cstdint>

namespace arctrace::shim {

struct LockCall {
  const char* name;  // of the function
  uint8_t locks;     // so many of its first arguments are addresses of locks
  // Of a function that may leave without the lock: its return value, as an arg spec
  // (arg_spec_code.hpp).
  const char* result;
};

inline constexpr LockCall kLockCalls[] = {
    {"cnd_broadcast", 1, ""},
    {"cnd_signal", 1, ""},
    {"cnd_timedwait", 2, ""},
    {"cnd_wait", 2, ""},
    {"mtx_lock", 1, ""},
    {"mtx_timedlock", 1, "0b40"},
    {"mtx_trylock", 1, "0b40"},
    {"mtx_unlock", 1, ""},
    {"pthread_cond_broadcast", 1, ""},
    {"pthread_cond_clockwait", 2, ""},
    {"pthread_cond_signal", 1, ""},
    {"pthread_cond_timedwait", 2, ""},
    {"pthread_cond_wait", 2, ""},
    {"pthread_mutex_clocklock", 1, "0k40"},
    {"pthread_mutex_lock", 1, ""},
    {"pthread_mutex_timedlock", 1, "0k40"},
    {"pthread_mutex_trylock", 1, "0k40"},
    {"pthread_mutex_unlock", 1, ""},
    {"pthread_rwlock_clockrdlock", 1, "0k40"},
    {"pthread_rwlock_clockwrlock", 1, "0k40"},
    {"pthread_rwlock_rdlock", 1, ""},
    {"pthread_rwlock_timedrdlock", 1, "0k40"},
    {"pthread_rwlock_timedwrlock", 1, "0k40"},
    {"pthread_rwlock_tryrdlock", 1, "0k40"},
    {"pthread_rwlock_trywrlock", 1, "0k40"},
    {"pthread_rwlock_unlock", 1, ""},
    {"pthread_rwlock_wrlock", 1, ""},
    {"pthread_spin_lock", 1, ""},
    {"pthread_spin_trylock", 1, "0k40"},
    {"pthread_spin_unlock", 1, ""},
    {"sem_clockwait", 1, ""},
    {"sem_post", 1, ""},
    {"sem_timedwait", 1, ""},
    {"sem_wait", 1, ""},
};

static_assert([] {
  for (const LockCall& call : kLockCalls) {
    if (call.locks == 0 || call.locks > ARCTRACE_LOCK_WORDS_MAX) return false;
  }
  return true;
}());

}  // namespace arctrace::shim
