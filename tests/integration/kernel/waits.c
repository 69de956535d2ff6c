// Handles a signal, sleeps, computes, and passes a token to a child and back, and prints
// what it measured of it itself: lines "NAME VALUE".
#define _GNU_SOURCE
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static long long now(clockid_t clock) {
  struct timespec time;
  clock_gettime(clock, &time);
  return time.tv_sec * 1000000000LL + time.tv_nsec;
}

static long switches(void) {
  struct rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_nvcsw + usage.ru_nivcsw;
}

static void stay_on(int cpu) {
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(cpu, &one);
  sched_setaffinity(0, sizeof one, &one);
}

// Time that this thread, ready to run, waited for a CPU.
static long long waited_ns(void) {
  FILE* file = fopen("/proc/thread-self/schedstat", "r");
  long long ran = 0, waited = 0;
  if (file == NULL || fscanf(file, "%lld %lld", &ran, &waited) != 2) {
    perror("/proc/thread-self/schedstat");
    exit(1);
  }
  fclose(file);
  return waited;
}

// The time, but for what this thread waited. Both are of one moment if it did not wait
// while they were read.
static long long dispatched_ns(void) {
  for (;;) {
    const long long waited = waited_ns();
    const long long time = now(CLOCK_MONOTONIC);
    if (waited_ns() == waited) return time - waited;
  }
}

void sleeper(void) {
  for (int i = 0; i < 10; ++i) {
    const struct timespec pause = {0, 20000000};
    nanosleep(&pause, NULL);
  }
}

void computer(void) {
  const long long start = now(CLOCK_THREAD_CPUTIME_ID);
  while (now(CLOCK_THREAD_CPUTIME_ID) - start < 100000000) {
  }
}

void pass(int from, int to, int rounds, int begins) {
  char token = 0;
  for (int i = 0; i < rounds; ++i) {
    if (begins && write(to, &token, 1) != 1) exit(1);
    if (read(from, &token, 1) != 1) exit(1);
    if (!begins && write(to, &token, 1) != 1) exit(1);
  }
}

void handle(int number) { (void)number; }

int main(void) {
  setvbuf(stdout, NULL, _IOLBF, 0);
  printf("switches_before %ld\n", switches());
  signal(SIGUSR1, handle);
  raise(SIGUSR1);
  long long start = now(CLOCK_MONOTONIC);
  sleeper();
  printf("slept_ns %lld\n", now(CLOCK_MONOTONIC) - start);
  // A thread's CPU clock does not count what a hypervisor took from the CPU meanwhile;
  // the time on the CPU does. A thread that changes the CPU sometimes seems to wait for
  // milliseconds: the CPUs' queues have clocks of their own.
  stay_on(sched_getcpu());
  long long computed = now(CLOCK_THREAD_CPUTIME_ID);
  start = dispatched_ns();
  computer();
  printf("on_cpu_ns %lld\n", dispatched_ns() - start);
  computed = now(CLOCK_THREAD_CPUTIME_ID) - computed;
  printf("computed_ns %lld\n", computed);

  stay_on(0);
  int there[2], back[2];
  if (pipe(there) != 0 || pipe(back) != 0) return 1;
  const pid_t child = fork();
  if (child == 0) {
    pass(there[0], back[1], 2000, 0);
    _exit(0);
  }
  pass(back[0], there[1], 2000, 1);
  int status = 0;
  waitpid(child, &status, 0);
  printf("tid %d\nswitches %ld\n", (int)getpid(), switches());
  return status != 0;
}
