// Has the kernel do something for the program, one kind for each argument; prints its own
// counts of that in lines "NAME VALUE".
//   calls    system calls in caller()
//   faults   page faults in toucher()
//   mutex    release() wakes the thread that waits in take()
//   wakes    timers, and then another process, wake this one
//   hogs     two processes compute on one CPU
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "asleep.h"

#define PLAIN __attribute__((no_instrument_function))

enum { CALLS = 1000, PAGES = 300, ROUNDS = 50, SLEEPS = 10, PREEMPTIONS = 10 };

void caller(void) {
  for (int i = 0; i < CALLS; ++i) syscall(SYS_getppid);
}

PLAIN static long faults(void) {
  struct rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_minflt + usage.ru_majflt;
}

static long faults_within;  // the frame of toucher()

void toucher(volatile char* memory) {
  const long before = faults();
  for (int i = 0; i < PAGES; ++i) memory[4096 * i] = 1;
  faults_within += faults() - before;
}

static void touch(void) {
  char* memory = mmap(NULL, PAGES * 4096, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  madvise(memory, PAGES * 4096, MADV_NOHUGEPAGE);
  const long before = faults();
  toucher(memory);
  const long most =
      faults() - before;  // includes faults of the hooks, whose first calls these may be
  printf("pages %d\nfaults_least %ld\nfaults_most %ld\n", PAGES, faults_within, most);
}

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static atomic_int round_number, waiter_tid, taken;

void take(void) { pthread_mutex_lock(&mutex); }
void release(void) { pthread_mutex_unlock(&mutex); }

static void* waiter(void* unused) {
  atomic_store(&waiter_tid, (int)syscall(SYS_gettid));
  for (int i = 1; i <= ROUNDS; ++i) {
    while (atomic_load(&round_number) < i) sched_yield();
    take();
    pthread_mutex_unlock(&mutex);
    atomic_store(&taken, i);
  }
  return unused;
}

static void pause_for(long ns) {
  const struct timespec time = {0, ns};
  nanosleep(&time, NULL);
}

static void lock_and_release(void) {
  pthread_t thread;
  pthread_create(&thread, NULL, waiter, NULL);
  for (int i = 1; i <= ROUNDS; ++i) {
    pthread_mutex_lock(&mutex);
    atomic_store(&round_number, i);
    while (atomic_load(&waiter_tid) == 0) pause_for(100000);
    wait_for_sleep_in(atomic_load(&waiter_tid), SYS_futex);
    release();
    while (atomic_load(&taken) < i) pause_for(100000);
  }
  pthread_join(thread, NULL);
  printf("rounds %d\n", ROUNDS);
}

// Sleeps; then reads what a child writes when this process sleeps.
static int be_woken(void) {
  for (int i = 0; i < SLEEPS; ++i) pause_for(5000000);
  int ends[2];
  if (pipe(ends) != 0) return 1;
  const int parent = (int)getpid();
  const pid_t child = fork();
  if (child == 0) {
    for (int i = 0; i < ROUNDS; ++i) {
      wait_for_sleep_in(parent, SYS_read);
      if (write(ends[1], "x", 1) != 1) _exit(1);
    }
    _exit(0);
  }
  char byte;
  for (int i = 0; i < ROUNDS; ++i) {
    if (read(ends[0], &byte, 1) != 1) return 1;
  }
  int status = 0;
  waitpid(child, &status, 0);
  printf("sleeps %d\nrounds %d\nchild %d\n", SLEEPS, ROUNDS, (int)child);
  return status != 0;
}

PLAIN static long involuntary_switches(void) {
  struct rusage usage;
  getrusage(RUSAGE_THREAD, &usage);
  return usage.ru_nivcsw;
}

// How often each of the two processes was preempted in hog(), which goes on until both
// were preempted often enough: until then each has the CPU and has to leave it to the
// other.
static atomic_long* preempted;

void hog(int self) {
  const long before = involuntary_switches();
  do {
    for (volatile int i = 0; i < 100000; ++i) {
    }
    atomic_store(&preempted[self], involuntary_switches() - before);
  } while (atomic_load(&preempted[0]) < PREEMPTIONS ||
           atomic_load(&preempted[1]) < PREEMPTIONS);
}

static int hogs(void) {
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(sched_getcpu(), &one);
  sched_setaffinity(0, sizeof one, &one);
  preempted = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  const pid_t child = fork();
  hog(child == 0);
  if (child == 0) exit(0);
  int status = 0;
  waitpid(child, &status, 0);
  printf("child %d\npreempted %ld\nchild_preempted %ld\n", (int)child, preempted[0],
         preempted[1]);
  return status != 0;
}

int main(int count, char** arguments) {
  const char* what = count > 1 ? arguments[1] : "";
  printf("tid %d\n", (int)getpid());
  fflush(stdout);  // the child prints nothing
  if (strcmp(what, "calls") == 0) caller();
  if (strcmp(what, "faults") == 0) touch();
  if (strcmp(what, "mutex") == 0) lock_and_release();
  if (strcmp(what, "wakes") == 0) return be_woken();
  if (strcmp(what, "hogs") == 0) return hogs();
  return 0;
}
