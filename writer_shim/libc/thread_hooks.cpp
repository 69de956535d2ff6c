// Hooks the creation of threads. The new thread begins in a function of ours, which
// learns its stack, takes the slot and jumps to the program's routine.
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <threads.h>
#include <time.h>

#include "src/base/raw_syscall.hpp"
#include "writer_shim/base/glibc.hpp"
#include "writer_shim/base/stack_space.hpp"
#include "writer_shim/libc/hook.hpp"

namespace arctrace::shim {
namespace {

using Routine = void*(void*);

RealFunction<int(pthread_t*, const pthread_attr_t*, Routine*, void*)> real_pthread_create(
    "pthread_create");
RealFunction<int(thrd_t*, thrd_start_t, void*)> real_thrd_create("thrd_create");
RealFunction<int(pthread_t, const char*)> real_setname("pthread_setname_np");
// Before glibc 2.34 these functions are in libpthread, which a program need not have.
RealFunction<int(pthread_t, clockid_t*)> get_cpu_clock("pthread_getcpuclockid");
RealFunction<int(pthread_attr_t*)> get_default_attributes("pthread_getattr_default_np");
RealFunction<int(const pthread_attr_t*, size_t*)> get_stack_size(
    "pthread_attr_getstacksize");
RealFunction<int(const stack_t*, stack_t*)> real_sigaltstack("sigaltstack");

// The data that a new thread needs when it begins. fork wipes the table of these, because
// a child has none of the threads.
struct Beginning {
  uint32_t taken;
  Routine* routine;  // one of these two
  thrd_start_t c11_routine;
  void* argument;
  uintptr_t stack_size;  // 0: not known
};

constexpr uint32_t kBeginnings = 4096;

Beginning* beginnings;  // null: no session, or no memory
uint32_t likely_free;   // index

// Takes one; null: all are taken, and the thread begins without the shim.
Beginning* take_beginning() {
  if (beginnings == nullptr) return nullptr;
  const uint32_t first = IpcAtomics::load_relaxed(likely_free);
  for (uint32_t i = 0; i < kBeginnings; ++i) {
    const uint32_t index = (first + i) % kBeginnings;
    uint32_t free = 0;
    if (IpcAtomics::load_relaxed(beginnings[index].taken) == 0 &&
        IpcAtomics::compare_exchange_acq_rel(beginnings[index].taken, free,
                                             uint32_t{1})) {
      IpcAtomics::store_relaxed(likely_free, (index + 1) % kBeginnings);
      return &beginnings[index];
    }
  }
  return nullptr;
}

void release(Beginning& beginning) {
  const auto index = static_cast<uint32_t>(&beginning - beginnings);
  IpcAtomics::store_release(beginning.taken, uint32_t{0});
  IpcAtomics::store_relaxed(likely_free, index);
}

}  // namespace

// The id is taken from the thread's CPU clock, because libc gives it nowhere else without
// a system call.
uint32_t thread_id(pthread_t thread) {
  clockid_t clock = 0;
  auto* get = get_cpu_clock.get();
  if (get == nullptr || get(thread, &clock) != 0) return 0;
  // The number is above the bits of the clock's kind, inverted, which only early versions
  // of glibc do not do.
  const auto number = static_cast<uint32_t>(clock >> 3);
  return clock < 0 ? ~number : number;
}

namespace {

// To be called in the new thread, whose stack ends where libc's own frames end.
__attribute__((always_inline)) inline Beginning begin_thread(void* argument) {
  auto& shared = *static_cast<Beginning*>(argument);
  const Beginning beginning = shared;
  release(shared);
  const auto high = reinterpret_cast<uintptr_t>(__builtin_dwarf_cfa()) + 1;
  // The size includes libc's own data above, where the thread pointer points; the pages
  // below may be another stack's.
  constexpr uintptr_t kPage = 4096;
  const auto thread = reinterpret_cast<uintptr_t>(__builtin_thread_pointer());
  const uintptr_t top =
      thread > high && thread - high < beginning.stack_size ? thread : high;
  const uintptr_t low = beginning.stack_size != 0 && beginning.stack_size < high
                            ? (top - beginning.stack_size + kPage - 1) & ~(kPage - 1)
                            : high;
  arctrace_shim_new_thread(thread_id(pthread_self()), low, high);
  watch_thread_end();
  return beginning;
}

// Jumps to the program's routine in the end, so that no frame of ours stays.
void* start_thread(void* argument) {
  const Beginning beginning = begin_thread(argument);
  return beginning.routine(beginning.argument);
}

int start_c11_thread(void* argument) {
  const Beginning beginning = begin_thread(argument);
  return beginning.c11_routine(beginning.argument);
}

// The stack size of a thread with these attributes; libc may give it more.
uintptr_t stack_size(const pthread_attr_t* attributes) {
  size_t size = 0;
  auto* get = get_stack_size.get();
  auto* get_defaults = get_default_attributes.get();
  if (get == nullptr || get_defaults == nullptr) return 0;
  if (attributes != nullptr) return get(attributes, &size) == 0 ? size : 0;
  pthread_attr_t defaults;
  if (get_defaults(&defaults) != 0) return 0;
  if (get(&defaults, &size) != 0) size = 0;
  pthread_attr_destroy(&defaults);
  return size;
}

}  // namespace

void prepare_thread_hooks() {
  real_pthread_create.get();
  real_thrd_create.get();
  real_setname.get();
  real_sigaltstack.get();
  get_cpu_clock.get();
  get_default_attributes.get();
  get_stack_size.get();
  constexpr size_t kSize = kBeginnings * sizeof(Beginning);
  void* memory = sys::map(kSize, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1);
  if (memory == nullptr || sys::advise(memory, kSize, MADV_WIPEONFORK) != 0) return;
  beginnings = static_cast<Beginning*>(memory);
}

}  // namespace arctrace::shim

using namespace arctrace::shim;

ARCTRACE_HOOK int pthread_create(pthread_t* thread, const pthread_attr_t* attributes,
                                 void* (*routine)(void*), void* argument) {
  auto* real = real_pthread_create.get();
  if (real == nullptr) return ENOSYS;
  arctrace_shim_before_thread();
  Beginning* beginning = take_beginning();
  if (beginning == nullptr) return real(thread, attributes, routine, argument);
  make_thread_end_key();
  beginning->routine = routine;
  beginning->argument = argument;
  beginning->stack_size = stack_size(attributes);
  const int error = real(thread, attributes, start_thread, beginning);
  if (error != 0) release(*beginning);
  return error;
}

ARCTRACE_HOOK int thrd_create(thrd_t* thread, thrd_start_t routine, void* argument) {
  auto* real = real_thrd_create.get();
  if (real == nullptr) return thrd_error;
  arctrace_shim_before_thread();
  Beginning* beginning = take_beginning();
  if (beginning == nullptr) return real(thread, routine, argument);
  make_thread_end_key();
  beginning->c11_routine = routine;
  beginning->argument = argument;
  beginning->stack_size = stack_size(nullptr);
  const int result = real(thread, start_c11_thread, beginning);
  if (result != thrd_success) release(*beginning);
  return result;
}

ARCTRACE_HOOK int pthread_setname_np(pthread_t thread, const char* name) noexcept {
  auto* real = real_setname.get();
  if (real == nullptr) return ENOSYS;
  const int error = real(thread, name);
  if (error != 0 || !has_session()) return error;
  if (pthread_equal(thread, pthread_self()) != 0) {
    arctrace_thread_name(name);
    return 0;
  }
  if (const uint32_t tid = thread_id(thread); tid != 0) {
    arctrace_shim_other_thread_name(tid, name);
  }
  return 0;
}

ARCTRACE_HOOK int sigaltstack(const stack_t* stack, stack_t* former) noexcept {
  auto* real = real_sigaltstack.get();
  if (real == nullptr) {
    errno = ENOSYS;
    return -1;
  }
  const int result = real(stack, former);
  if (result == 0 && stack != nullptr) {
    const auto low = reinterpret_cast<uintptr_t>(stack->ss_sp);
    const bool is_off = (stack->ss_flags & SS_DISABLE) != 0;
    if (!is_off) expect_signal_stacks();
    arctrace_shim_signal_stack(is_off ? 0 : low, is_off ? 0 : low + stack->ss_size);
  }
  return result;
}
