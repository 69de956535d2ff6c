/* joined MODE: works until there is a file "stop", and prints what went wrong, if
 * anything did. The program is joined meanwhile, which it must not notice. The modes:
 *
 * sleeps: a system call with a time-out, which must not end early, with errno and vectors
 * unchanged.
 *
 * polls: system calls that a stop ends with EINTR.
 *
 * computes: a sum that never sleeps, in vector registers.
 *
 * signals: a handler at 1 kHz, on a signal stack.
 *
 * threads: threads that allocate and load a library.
 *
 * executes: children that execute a program.
 *
 * loads: a plugin, whose path is in PLUGIN, that is loaded and unloaded again and again.
 *
 * robust: threads that end with robust mutexes locked.
 *
 * counts: parts in which threads call functions, each a known number of times.
 *
 * vforks: a thread that mostly waits in vfork(), beside others. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/sem.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "rounds.h"

static void expect(int holds, const char* what) {
  if (!holds) {
    printf("%s: %s\n", what, strerror(errno));
    exit(1);
  }
}

static void sleeps(void) {
  volatile double scale = 1.5;
  double kept[16];
  for (int i = 0; i < 16; ++i) kept[i] = scale * i;
  while (!is_stopped()) {
    errno = ENOTTY;
    struct timespec left = {0, 0};
    const struct timespec time = {0, 3000000};
    const int result = nanosleep(&time, &left);
    expect(result == 0, "nanosleep");
    expect(errno == ENOTTY, "errno");
    for (int i = 0; i < 16; ++i) expect(kept[i] == scale * i, "vectors");
    getppid();
  }
}

static void polls(void) {
  const int epoll = epoll_create1(0);
  int sockets[2];
  expect(socketpair(AF_UNIX, SOCK_STREAM, 0, sockets) == 0, "socketpair");
  const struct timeval patience = {0, 5000};
  setsockopt(sockets[0], SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  const int semaphores = semget(IPC_PRIVATE, 1, 0600);
  while (!is_stopped()) {
    struct epoll_event event;
    char byte;
    expect(epoll_wait(epoll, &event, 1, 5) == 0, "epoll_wait");
    expect(recv(sockets[0], &byte, 1, 0) == -1 && errno == EAGAIN, "recv");
    struct sembuf take = {0, -1, 0};
    const struct timespec time = {0, 5000000};
    expect(semtimedop(semaphores, &take, 1, &time) == -1 && errno == EAGAIN,
           "semtimedop");
    sigset_t none;
    sigemptyset(&none);
    sigaddset(&none, SIGUSR1);
    expect(sigtimedwait(&none, NULL, &time) == -1 && errno == EAGAIN, "sigtimedwait");
    getppid();
  }
  semctl(semaphores, 0, IPC_RMID);
}

__attribute__((noinline)) static double sum_of(int count) {
  double sums[8] = {0};
  for (int i = 0; i < count; ++i) {
    for (int k = 0; k < 8; ++k) sums[k] += (double)(i % 7) * k;
  }
  double sum = 0;
  for (int k = 0; k < 8; ++k) sum += sums[k];
  return sum;
}

static void computes(void) {
  const double sum = sum_of(200000);
  while (!is_stopped()) {
    expect(sum_of(200000) == sum, "sum");
    getppid();
  }
}

static atomic_int signals_seen;

static void handle(int number) {
  const int error = errno;
  getppid();
  signals_seen += number == SIGALRM;
  errno = error;
}

static void signals(void) {
  static char stack[64 << 10];
  const stack_t signal_stack = {.ss_sp = stack, .ss_size = sizeof stack};
  expect(sigaltstack(&signal_stack, NULL) == 0, "sigaltstack");
  struct sigaction action = {.sa_handler = handle, .sa_flags = SA_ONSTACK | SA_RESTART};
  sigaction(SIGALRM, &action, NULL);
  const struct itimerval timer = {{0, 1000}, {0, 1000}};
  setitimer(ITIMER_REAL, &timer, NULL);
  while (!is_stopped()) {
    stack_t now;
    expect(sigaltstack(NULL, &now) == 0 && now.ss_sp == stack && now.ss_flags == 0,
           "signal stack");
    free(strdup("signals"));
  }
  sigset_t mask;
  sigprocmask(SIG_SETMASK, NULL, &mask);
  expect(sigisemptyset(&mask), "signal mask");
  expect(signals_seen > 0, "signals");
}

static void* allocates(void* unused) {
  while (!is_stopped()) {
    for (size_t i = 1; i < 200; ++i) free(malloc(i * 100));
    void* library = dlopen("libm.so.6", RTLD_NOW);
    expect(library != NULL, "dlopen");
    dlclose(library);
    getppid();
  }
  return unused;
}

static void threads(void) {
  pthread_t ids[8];
  for (int i = 0; i < 8; ++i) {
    expect(pthread_create(&ids[i], NULL, allocates, NULL) == 0, "pthread_create");
  }
  for (int i = 0; i < 8; ++i) pthread_join(ids[i], NULL);
}

static void* waits(void* unused) {
  while (!is_stopped()) usleep(100 * 1000);
  return unused;
}

// The thread can't be stopped while it waits in vfork().
static void* has_children(void* unused) {
  while (!is_stopped()) {
    int status = 0;
    const pid_t child = vfork();
    if (child == 0) {
      usleep(30 * 1000);
      _exit(0);
    }
    expect(waitpid(child, &status, 0) == child && status == 0, "vfork");
    usleep(1000);
  }
  return unused;
}

static void vforks(void) {
  pthread_t ids[20];
  for (int i = 0; i < 20; ++i) {
    expect(pthread_create(&ids[i], NULL, i == 10 ? has_children : waits, NULL) == 0,
           "pthread_create");
  }
  for (int i = 0; i < 20; ++i) pthread_join(ids[i], NULL);
}

static void executes(void) {
  while (!is_stopped()) {
    const pid_t child = fork();
    if (child == 0) {
      execl("/bin/true", "true", (char*)NULL);
      _exit(127);
    }
    int status = -1;
    expect(waitpid(child, &status, 0) == child, "waitpid");
    expect(status == 0, "the child's status");
    getppid();
  }
}

static void loads(void) {
  while (!is_stopped()) {
    void* plugin = dlopen(getenv("PLUGIN"), RTLD_NOW);
    expect(plugin != NULL, "dlopen");
    int (*work)(int) = NULL;
    *(void**)&work = dlsym(plugin, "plugin_work");
    expect(work != NULL && work(1) == 2, "plugin_work");
    expect(dlclose(plugin) == 0, "dlclose");
    getppid();
  }
}

/* A thread that ends with a robust mutex locked leaves it so marked, whatever else is on
 * its list. */
static pthread_mutex_t robust_mutexes[3];
static sem_t is_locked;

static void* dies_with_lock(void* first) {
  pthread_mutex_t* const mutexes = first;
  expect(pthread_mutex_lock(&mutexes[0]) == 0, "robust mutex");
  sem_post(&is_locked);
  while (mutexes == &robust_mutexes[1] ? rand() % 16 != 0 : !is_stopped()) {
    expect(pthread_mutex_lock(&robust_mutexes[2]) == 0, "another robust mutex");
    getppid();
    expect(pthread_mutex_unlock(&robust_mutexes[2]) == 0, "unlocking");
  }
  return NULL;
}

static void expect_dead_owner(pthread_mutex_t* mutex) {
  errno = pthread_mutex_lock(mutex);
  expect(errno == EOWNERDEAD, "a robust mutex whose owner is dead");
  expect(pthread_mutex_consistent(mutex) == 0, "pthread_mutex_consistent");
  expect(pthread_mutex_unlock(mutex) == 0, "unlocking it");
}

static void robust(void) {
  pthread_t old_thread, thread;
  pthread_mutexattr_t attributes;
  pthread_mutexattr_init(&attributes);
  pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
  for (int i = 0; i < 3; ++i) pthread_mutex_init(&robust_mutexes[i], &attributes);
  sem_init(&is_locked, 0, 0);
  expect(pthread_create(&old_thread, NULL, dies_with_lock, &robust_mutexes[0]) == 0,
         "pthread_create");
  sem_wait(&is_locked);
  while (!is_stopped()) {
    expect(pthread_create(&thread, NULL, dies_with_lock, &robust_mutexes[1]) == 0,
           "pthread_create");
    sem_wait(&is_locked);
    expect_dead_owner(&robust_mutexes[1]);
    pthread_join(thread, NULL);
  }
  expect_dead_owner(&robust_mutexes[0]);
  pthread_join(old_thread, NULL);
}

enum { kCallsOfA = 7, kCallsOfB = 11 };

__attribute__((noinline)) static unsigned counted_a(unsigned sum, unsigned i) {
  __asm__ volatile("");
  return sum * 3 + i;
}

__attribute__((noinline)) static unsigned counted_b(unsigned sum, unsigned i) {
  __asm__ volatile("");
  return sum * 5 + i;
}

__attribute__((noinline)) static unsigned counted_part(unsigned sum) {
  for (unsigned i = 0; i < kCallsOfA; ++i) sum = counted_a(sum, i);
  for (unsigned i = 0; i < kCallsOfB; ++i) sum = counted_b(sum, i);
  return sum;
}

static void* counts_parts(void* unused) {
  volatile unsigned one = 1; /* of which the compiler makes no other function */
  const unsigned sum = counted_part(one);
  const struct timespec pause = {0, 2000000};
  while (!is_stopped()) {
    for (int i = 0; i < 20; ++i) expect(counted_part(one) == sum, "counted_part");
    nanosleep(&pause, NULL);
  }
  return unused;
}

static void counts(void) {
  pthread_t ids[4];
  for (int i = 0; i < 4; ++i) {
    expect(pthread_create(&ids[i], NULL, counts_parts, NULL) == 0, "pthread_create");
  }
  for (int i = 0; i < 4; ++i) pthread_join(ids[i], NULL);
}

int main(int count, char** arguments) {
  static const struct {
    const char* name;
    void (*run)(void);
  } modes[] = {{"sleeps", sleeps},   {"polls", polls},     {"computes", computes},
               {"signals", signals}, {"threads", threads}, {"executes", executes},
               {"loads", loads},     {"robust", robust},   {"counts", counts},
               {"vforks", vforks}};
  for (size_t i = 0; count == 2 && i < sizeof modes / sizeof *modes; ++i) {
    if (strcmp(arguments[1], modes[i].name) != 0) continue;
    puts("begins");
    fflush(stdout);
    modes[i].run();
    puts("as always");
    return 7;
  }
  return EXIT_FAILURE;
}
