// Calls that tests/processes/emulated_shim_test.cpp counts.
#include <pthread.h>
#include <stddef.h>

static volatile int sum;

static __attribute__((noinline)) void inner(int n) { sum += n; }

static __attribute__((noinline)) void outer(int n) {
  inner(n);
  inner(-n);
}

// Has its arguments in vector registers when a hook sees it for the first time.
static __attribute__((noinline)) double half(volatile double n) { return n / 2; }

static void* run(void* unused) {
  inner(1);
  return unused;
}

int main(void) {
  for (int i = 0; i < 10; ++i) outer(i);
  pthread_t thread;
  if (pthread_create(&thread, NULL, run, NULL) != 0) return 1;
  pthread_join(thread, NULL);
  return sum == 1 && half(5) == 2.5 ? 0 : 1;
}
