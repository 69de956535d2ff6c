// Handles a signal, sleeps, computes, and passes a token to a child and back; prints its
// own measurements in lines "NAME VALUE".
#define _GNU_SOURCE
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define PLAIN __attribute__((no_instrument_function))

enum {
  SLEEPS = 10,
  SLEEP_NS = 20000000,
  COMPUTATIONS = 15,
  COMPUTE_NS = 10000000,
  ROUNDS = 2000
};

PLAIN static long long now(clockid_t clock) {
  struct timespec time;
  clock_gettime(clock, &time);
  return time.tv_sec * 1000000000LL + time.tv_nsec;
}

// How often this thread has left its CPU.
PLAIN static long switches(void) {
  struct rusage usage;
  getrusage(RUSAGE_THREAD, &usage);
  return usage.ru_nvcsw + usage.ru_nivcsw;
}

// Asks the same in a frame, so that the count is of a time between the frame's ends.
__attribute__((noinline)) long counted(void) { return switches(); }

static void stay_on(int cpu) {
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(cpu, &one);
  sched_setaffinity(0, sizeof one, &one);
}

// The time that this thread, ready to run, waited for a CPU.
PLAIN static long long waited_ns(void) {
  FILE* file = fopen("/proc/thread-self/schedstat", "r");
  long long ran = 0, waited = 0;
  if (file == NULL || fscanf(file, "%lld %lld", &ran, &waited) != 2) {
    perror("/proc/thread-self/schedstat");
    exit(1);
  }
  fclose(file);
  return waited;
}

// The time, without what this thread waited. Both clocks are read at one moment if the
// thread did not wait while they were read.
PLAIN static long long dispatched_ns(void) {
  for (;;) {
    const long long waited = waited_ns();
    const long long time = now(CLOCK_MONOTONIC);
    if (waited_ns() == waited) return time - waited;
  }
}

// Switches within the frames of sleeper() and of computer(), and time on the CPU within
// that of computer().
static long within;
static long long on_cpu_within;

void sleeper(void) {
  const long before = switches();
  for (int i = 0; i < SLEEPS; ++i) {
    const struct timespec pause = {0, SLEEP_NS};
    nanosleep(&pause, NULL);
  }
  within += switches() - before;
}

void computer(void) {
  const long before = switches();
  const long long dispatched = dispatched_ns();
  const long long start = now(CLOCK_THREAD_CPUTIME_ID);
  while (now(CLOCK_THREAD_CPUTIME_ID) - start < COMPUTE_NS) {
  }
  on_cpu_within = dispatched_ns() - dispatched;
  within += switches() - before;
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

// Prints how many switches happened in the frame, at least and at most.
static void tell_switches(const char* name, long most) {
  printf("%s_switches_least %ld\n%s_switches_most %ld\n", name, within, name, most);
  within = 0;
}

int main(void) {
  setvbuf(stdout, NULL, _IOLBF, 0);
  printf("switches_before %ld\n", counted());
  signal(SIGUSR1, handle);
  raise(SIGUSR1);
  long before = switches();
  long long start = now(CLOCK_MONOTONIC);
  sleeper();
  const long long slept = now(CLOCK_MONOTONIC) - start;
  tell_switches("sleeper", switches() - before);
  printf("slept_ns %lld\nasked_ns %lld\n", slept, SLEEPS * (long long)SLEEP_NS);
  // A thread's CPU clock does not count what a hypervisor took from the CPU meanwhile;
  // the recorded time on the CPU does. A thread that changes the CPU sometimes seems to
  // wait for milliseconds, because the CPUs' queues have clocks of their own.
  stay_on(sched_getcpu());
  for (int i = 0; i < COMPUTATIONS; ++i) {
    char name[32];
    snprintf(name, sizeof name, "computer_%d", i);
    start = dispatched_ns();
    before = switches();
    computer();
    const long most = switches() - before;
    printf("computer_%d_on_cpu_ns_most %lld\n", i, dispatched_ns() - start);
    printf("computer_%d_on_cpu_ns_least %lld\n", i, on_cpu_within);
    tell_switches(name, most);
  }
  printf("computations %d\ncompute_ns %lld\n", COMPUTATIONS, (long long)COMPUTE_NS);

  int there[2], back[2];
  if (pipe(there) != 0 || pipe(back) != 0) return 1;
  const pid_t child = fork();
  if (child == 0) {
    pass(there[0], back[1], ROUNDS, 0);
    _exit(0);
  }
  pass(back[0], there[1], ROUNDS, 1);
  int status = 0;
  waitpid(child, &status, 0);
  printf("tid %d\nchild %d\nrounds %d\nswitches %ld\n", (int)getpid(), (int)child, ROUNDS,
         counted());
  return status != 0;
}
