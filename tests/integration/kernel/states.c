// What the kernel does for a program, one kind for each argument; prints what it counted
// of it itself: lines "NAME VALUE".
//   calls    system calls in caller()
//   faults   page faults in toucher()
//   mutex    release() wakes the thread that waits in take()
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

enum { CALLS = 1000, PAGES = 300, ROUNDS = 50 };

void caller(void) {
  for (int i = 0; i < CALLS; ++i) syscall(SYS_getppid);
}

void toucher(volatile char* memory) {
  for (int i = 0; i < PAGES; ++i) memory[4096 * i] = 1;
}

static long faults(void) {
  struct rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_minflt + usage.ru_majflt;
}

static void touch(void) {
  long found = 0;
  // First memory that is there already: a hook may have page faults of its own the first
  // time that it is called from some place.
  for (int is_new = 0; is_new < 2; ++is_new) {
    char* memory = mmap(NULL, PAGES * 4096, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | (is_new ? 0 : MAP_POPULATE), -1, 0);
    madvise(memory, PAGES * 4096, MADV_NOHUGEPAGE);
    const long before = faults();
    toucher(memory);
    found = faults() - before;
  }
  printf("pages %d\nfaults %ld\n", PAGES, found);
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

// The only thing that the waiter sleeps for is the mutex.
static int is_asleep(int tid) {
  char path[64], state = 0;
  snprintf(path, sizeof path, "/proc/self/task/%d/stat", tid);
  FILE* file = fopen(path, "r");
  if (file == NULL) return 0;
  const int found = fscanf(file, "%*d %*s %c", &state);
  fclose(file);
  return found == 1 && state == 'S';
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
    while (!is_asleep(atomic_load(&waiter_tid))) pause_for(100000);
    pause_for(100000);  // until it has left its CPU
    release();
    while (atomic_load(&taken) < i) pause_for(100000);
  }
  pthread_join(thread, NULL);
  printf("rounds %d\n", ROUNDS);
}

__attribute__((no_instrument_function)) static long long cpu_time(void) {
  struct timespec time;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return time.tv_sec * 1000000000LL + time.tv_nsec;
}

void hog(void) {
  const long long start = cpu_time();
  while (cpu_time() - start < 150000000) {
  }
}

static int hogs(void) {
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(0, &one);
  sched_setaffinity(0, sizeof one, &one);
  const pid_t child = fork();
  hog();
  if (child == 0) exit(0);
  int status = 0;
  waitpid(child, &status, 0);
  printf("child %d\n", (int)child);
  return status != 0;
}

int main(int count, char** arguments) {
  const char* what = count > 1 ? arguments[1] : "";
  printf("tid %d\n", (int)getpid());
  fflush(stdout);  // the child prints nothing
  if (strcmp(what, "calls") == 0) caller();
  if (strcmp(what, "faults") == 0) touch();
  if (strcmp(what, "mutex") == 0) lock_and_release();
  if (strcmp(what, "hogs") == 0) return hogs();
  return 0;
}
