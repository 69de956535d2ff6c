/* hooked [stands]: threads call functions that begin with hooks, or are patched, and
 * handlers interrupt them there, until there is a file "stop". Sums are as expected,
 * whoever changes the hooks meanwhile. With `stands`, a handler that has interrupted a
 * thread within the bytes that change runs until there is a file "leave". */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#include "rounds.h"

enum { kThreads = 3, kFunctions = 8 };

#define FUNCTION(n)                                                              \
  __attribute__((noinline)) static uint64_t hooked_##n(uint64_t a, uint64_t b) { \
    __asm__ volatile("");                                                        \
    return a * 3 + b + n;                                                        \
  }
FUNCTION(0)
FUNCTION(1)
FUNCTION(2)
FUNCTION(3)
FUNCTION(4)
FUNCTION(5)
FUNCTION(6)
FUNCTION(7)

static uint64_t (*const functions[kFunctions])(uint64_t, uint64_t) = {
    hooked_0, hooked_1, hooked_2, hooked_3, hooked_4, hooked_5, hooked_6, hooked_7};

__attribute__((noinline)) static uint64_t sum_of(uint64_t rounds) {
  uint64_t sum = 1;
  for (uint64_t i = 0; i < rounds; ++i) sum = functions[i % kFunctions](sum, i);
  return sum;
}

static uint64_t expected_sum(uint64_t rounds) {
  uint64_t sum = 1;
  for (uint64_t i = 0; i < rounds; ++i) sum = sum * 3 + i + i % kFunctions;
  return sum;
}

static void check(uint64_t rounds) {
  if (sum_of(rounds) == expected_sum(rounds)) return;
  static const char text[] = "a sum is wrong\n";
  if (write(STDOUT_FILENO, text, sizeof text - 1) >= 0) _exit(1);
}

static long cpu_ns(void) {
  struct timespec time;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return time.tv_sec * 1000000000 + time.tv_nsec;
}

/* Takes a large part of the thread's time, and is interrupted itself. */
static void handle(int number) {
  const long end = cpu_ns() + (number == SIGRTMIN ? 5000000 : 2000000);
  do {
    check(200);
  } while (cpu_ns() < end);
}

static void start_timer(int signal, long ns) {
  struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = signal};
  event._sigev_un._tid = (pid_t)syscall(SYS_gettid);
  timer_t timer;
  const struct itimerspec time = {{0, ns}, {0, ns}};
  if (timer_create(CLOCK_THREAD_CPUTIME_ID, &event, &timer) != 0 ||
      timer_settime(timer, 0, &time, NULL) != 0) {
    exit(2);
  }
}

static void* work(void* stack) {
  const stack_t signal_stack = {.ss_sp = stack, .ss_size = 64 << 10};
  sigaltstack(&signal_stack, NULL);
  start_timer(SIGRTMIN, 11000000);
  start_timer(SIGRTMIN + 1, 7000000);
  while (!is_stopped()) check(100000);
  return NULL;
}

/* Runs on the signal stack. */
static void wait_to_leave(int number) {
  const struct timespec pause = {0, 1000000};
  const int file = open("stands", O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
  if (file >= 0) close(file);
  while (number == SIGUSR1 && access("leave", F_OK) != 0) nanosleep(&pause, NULL);
}

/* Called after each instruction until one of the function's own has run, on the thread's
 * own stack. */
static void step(int number, siginfo_t* info, void* context) {
  (void)info;
  greg_t* const registers = ((ucontext_t*)context)->uc_mcontext.gregs;
  const greg_t passed = registers[REG_RIP] - (greg_t)(uintptr_t)functions[0];
  if (passed < 1 || passed > 4) return;
  if (number == SIGTRAP) raise(SIGUSR1);
  registers[REG_EFL] &= ~(greg_t)0x100; /* the trap flag */
}

static void stand(void) {
  static char stack[64 << 10];
  const stack_t signal_stack = {.ss_sp = stack, .ss_size = sizeof stack};
  sigaltstack(&signal_stack, NULL);
  struct sigaction action = {.sa_sigaction = step, .sa_flags = SA_SIGINFO};
  sigaction(SIGTRAP, &action, NULL);
  struct sigaction wait = {.sa_handler = wait_to_leave, .sa_flags = SA_ONSTACK};
  sigaction(SIGUSR1, &wait, NULL);
  __asm__ volatile("pushf; orl $0x100, (%%rsp); popf" : : : "memory", "cc");
  if (functions[0](2, 3) != 9) {
    puts("the result is wrong");
    exit(1);
  }
}

int main(int count, char** arguments) {
  /* One handler runs on the signal stack, one on the thread's own. */
  struct sigaction action = {.sa_handler = handle, .sa_flags = SA_RESTART};
  sigaction(SIGRTMIN, &action, NULL);
  action.sa_flags |= SA_ONSTACK;
  sigaction(SIGRTMIN + 1, &action, NULL);
  static char stacks[kThreads][64 << 10];
  pthread_t threads[kThreads];
  puts("begins");
  fflush(stdout);
  for (int i = 0; i < kThreads; ++i) pthread_create(&threads[i], NULL, work, stacks[i]);
  if (count > 1 && arguments[1][0] == 's') stand();
  for (int i = 0; i < kThreads; ++i) pthread_join(threads[i], NULL);
  puts("as always");
  return 7;
}
