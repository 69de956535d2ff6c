#include "reader/analysis/lock_functions.hpp"

#include <algorithm>
#include <iterator>
#include <string_view>

#include "reader/analysis/function_kinds.hpp"

namespace arctrace::reader {
namespace {

using Does = LockFunction::Does;

constexpr bool kTries = true;

struct NamedLockFunction {
  std::string_view name;
  LockFunction function;
};

constexpr NamedLockFunction kLockFunctions[] = {
    {"cnd_broadcast", {LockKind::kCondition, Does::kWake}},
    {"cnd_signal", {LockKind::kCondition, Does::kWake}},
    {"cnd_timedwait", {LockKind::kCondition, Does::kWait}},
    {"cnd_wait", {LockKind::kCondition, Does::kWait}},
    {"mtx_lock", {LockKind::kMutex, Does::kAcquire}},
    {"mtx_timedlock", {LockKind::kMutex, Does::kAcquire}},
    {"mtx_trylock", {LockKind::kMutex, Does::kAcquire, kTries}},
    {"mtx_unlock", {LockKind::kMutex, Does::kRelease}},
    {"pthread_cond_broadcast", {LockKind::kCondition, Does::kWake}},
    {"pthread_cond_clockwait", {LockKind::kCondition, Does::kWait}},
    {"pthread_cond_signal", {LockKind::kCondition, Does::kWake}},
    {"pthread_cond_timedwait", {LockKind::kCondition, Does::kWait}},
    {"pthread_cond_wait", {LockKind::kCondition, Does::kWait}},
    {"pthread_mutex_clocklock", {LockKind::kMutex, Does::kAcquire}},
    {"pthread_mutex_lock", {LockKind::kMutex, Does::kAcquire}},
    {"pthread_mutex_timedlock", {LockKind::kMutex, Does::kAcquire}},
    {"pthread_mutex_trylock", {LockKind::kMutex, Does::kAcquire, kTries}},
    {"pthread_mutex_unlock", {LockKind::kMutex, Does::kRelease}},
    {"pthread_rwlock_clockrdlock", {LockKind::kRwlock, Does::kAcquireShared}},
    {"pthread_rwlock_clockwrlock", {LockKind::kRwlock, Does::kAcquire}},
    {"pthread_rwlock_rdlock", {LockKind::kRwlock, Does::kAcquireShared}},
    {"pthread_rwlock_timedrdlock", {LockKind::kRwlock, Does::kAcquireShared}},
    {"pthread_rwlock_timedwrlock", {LockKind::kRwlock, Does::kAcquire}},
    {"pthread_rwlock_tryrdlock", {LockKind::kRwlock, Does::kAcquireShared, kTries}},
    {"pthread_rwlock_trywrlock", {LockKind::kRwlock, Does::kAcquire, kTries}},
    {"pthread_rwlock_unlock", {LockKind::kRwlock, Does::kRelease}},
    {"pthread_rwlock_wrlock", {LockKind::kRwlock, Does::kAcquire}},
    {"pthread_spin_lock", {LockKind::kSpinlock, Does::kAcquire}},
    {"pthread_spin_trylock", {LockKind::kSpinlock, Does::kAcquire, kTries}},
    {"pthread_spin_unlock", {LockKind::kSpinlock, Does::kRelease}},
    {"sem_clockwait", {LockKind::kSemaphore, Does::kWait}},
    {"sem_post", {LockKind::kSemaphore, Does::kWake}},
    {"sem_timedwait", {LockKind::kSemaphore, Does::kWait}},
    {"sem_wait", {LockKind::kSemaphore, Does::kWait}},
};
static_assert(std::is_sorted(std::begin(kLockFunctions), std::end(kLockFunctions),
                             [](const NamedLockFunction& a, const NamedLockFunction& b) {
                               return a.name < b.name;
                             }));

}  // namespace

const char* lock_kind_name(LockKind kind) {
  switch (kind) {
    case LockKind::kMutex:
      return "mutex";
    case LockKind::kRwlock:
      return "rwlock";
    case LockKind::kSpinlock:
      return "spinlock";
    case LockKind::kCondition:
      return "condition";
    case LockKind::kSemaphore:
      break;
  }
  return "semaphore";
}

std::optional<LockFunction> lock_function(const Function& function) {
  // A program's own function of such a name has no kind.
  if (!function_kind(function).has_value()) return std::nullopt;
  const auto found = std::lower_bound(
      std::begin(kLockFunctions), std::end(kLockFunctions), function.name,
      [](const NamedLockFunction& entry, const std::string& name) {
        return entry.name < name;
      });
  if (found == std::end(kLockFunctions) || found->name != function.name)
    return std::nullopt;
  return found->function;
}

}  // namespace arctrace::reader
