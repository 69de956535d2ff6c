#define _GNU_SOURCE
#include "waiting_calls.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/select.h>
#include <sys/sem.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

static const struct timespec kWait = {0, kWaitMs * 1000000L};
static int epoll, silent_pipe[2], silent_sockets[2], semaphores, messages;
static int read_pipe[2], listener, full_listener, lock_file, lock_file_of_helper;
static struct sockaddr_in address;
static socklen_t address_size = sizeof address;
static const struct sockaddr_un full_address = {AF_UNIX, "full"};
static sem_t never;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;

static void require(int holds, const char* what) {
  if (!holds) {
    printf("%s: %s\n", what, strerror(errno));
    exit(1);
  }
}

long long now_ns(clockid_t clock) {
  struct timespec time;
  clock_gettime(clock, &time);
  return time.tv_sec * 1000000000LL + time.tv_nsec;
}

static struct timespec after_wait(clockid_t clock) {
  const long long end = now_ns(clock) + kWaitMs * 1000000LL;
  const struct timespec time = {end / 1000000000, end % 1000000000};
  return time;
}

/* Returns 0, or -1 with errno set, for a function that returns its error itself. */
static int set_errno(int error) {
  errno = error;
  return error == 0 ? 0 : -1;
}

void sleep_ms(int ms) {
  const struct timespec time = {0, ms * 1000000L};
  nanosleep(&time, NULL);
}

/* Calls that wait for a time. */

static int waits_nanosleep(void) { return nanosleep(&kWait, NULL); }

static int waits_relative(void) {
  return set_errno(clock_nanosleep(CLOCK_MONOTONIC, 0, &kWait, NULL));
}

static int waits_absolute(void) {
  const struct timespec end = after_wait(CLOCK_MONOTONIC);
  return set_errno(clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &end, NULL));
}

static int waits_poll(void) {
  struct pollfd file = {silent_pipe[0], POLLIN, 0};
  return poll(&file, 1, kWaitMs);
}

static int waits_ppoll(void) {
  struct pollfd file = {silent_pipe[0], POLLIN, 0};
  return ppoll(&file, 1, &kWait, NULL);
}

static int waits_select(void) {
  fd_set files;
  FD_ZERO(&files);
  FD_SET(silent_pipe[0], &files);
  struct timeval time = {0, kWaitMs * 1000L};
  return select(silent_pipe[0] + 1, &files, NULL, NULL, &time);
}

static int waits_pselect(void) {
  fd_set files;
  FD_ZERO(&files);
  FD_SET(silent_pipe[0], &files);
  return pselect(silent_pipe[0] + 1, &files, NULL, NULL, &kWait, NULL);
}

static int waits_epoll(void) {
  struct epoll_event event;
  return epoll_wait(epoll, &event, 1, kWaitMs);
}

static int waits_condition(void) {
  const struct timespec end = after_wait(CLOCK_REALTIME);
  pthread_mutex_lock(&mutex);
  int error = 0;
  while (error == 0) error = pthread_cond_timedwait(&condition, &mutex, &end);
  pthread_mutex_unlock(&mutex);
  return set_errno(error);
}

static int waits_semaphore(void) {
  const struct timespec end = after_wait(CLOCK_REALTIME);
  return sem_timedwait(&never, &end);
}

static int waits_recv(void) {
  char byte;
  return (int)recv(silent_sockets[0], &byte, 1, 0);
}

static int waits_semtimedop(void) {
  struct sembuf take = {0, -1, 0};
  return semtimedop(semaphores, &take, 1, &kWait);
}

static int waits_signal(void) {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGUSR1);
  return sigtimedwait(&signals, NULL, &kWait);
}

/* Calls that wait for what a child or the helper does, which takes its time. */

static pid_t child_that_sleeps(void) {
  const pid_t child = fork();
  if (child == 0) {
    sleep_ms(kHelpMs);
    _exit(3);
  }
  return child;
}

static int waits_wait4(void) {
  int status = 0;
  const pid_t child = child_that_sleeps();
  return waitpid(child, &status, 0) == child ? WEXITSTATUS(status) : -1;
}

static int waits_waitid(void) {
  siginfo_t end = {0};
  const pid_t child = child_that_sleeps();
  return waitid(P_PID, (id_t)child, &end, WEXITED) == 0 ? end.si_status : -1;
}

static void help_read(void) { require(write(read_pipe[1], "r", 1) == 1, "write"); }

static int waits_read(void) {
  char byte = 0;
  return read(read_pipe[0], &byte, 1) == 1 ? byte : -1;
}

static void help_accept(void) {
  const int peer = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  require(connect(peer, (struct sockaddr*)&address, address_size) == 0, "connect");
  close(peer);
}

static int waits_accept(void) {
  const int peer = accept(listener, NULL, NULL);
  if (peer < 0) return -1;
  close(peer);
  return 0;
}

/* The socket has a time-out that it doesn't need. */
static int connect_to_full(void) {
  const int peer = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const struct timeval patience = {600, 0};
  setsockopt(peer, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
  const struct sockaddr* const to = (const struct sockaddr*)&full_address;
  const int result = connect(peer, to, sizeof full_address);
  const int error = errno;
  close(peer);
  errno = error;
  return result;
}

/* The queue always has one connection, and no space for another one. */
static void help_connect(void) {
  const int peer = accept(full_listener, NULL, NULL);
  require(peer >= 0, "accept");
  close(peer);
}

static void help_msgrcv(void) {
  const struct {
    long type;
    char text[1];
  } message = {5, {'m'}};
  require(msgsnd(messages, &message, 1, 0) == 0, "msgsnd");
}

static int waits_msgrcv(void) {
  struct {
    long type;
    char text[1];
  } message = {0};
  const int size = (int)msgrcv(messages, &message, 1, 5, 0);
  return size == 1 ? message.text[0] : size;
}

static int waits_flock(void) {
  if (flock(lock_file, LOCK_EX) != 0) return -1;
  return flock(lock_file, LOCK_UN);
}

static struct flock lock_of(short type) {
  struct flock lock = {0};
  lock.l_type = type;
  lock.l_whence = SEEK_SET;
  return lock;
}

/* Uses a lock of an open file, because fcntl()'s other locks are the process'. */
static int waits_fcntl(void) {
  struct flock lock = lock_of(F_WRLCK);
  if (fcntl(lock_file, F_OFD_SETLKW, &lock) != 0) return -1;
  lock.l_type = F_UNLCK;
  return fcntl(lock_file, F_OFD_SETLK, &lock);
}

/* pause() always ends with EINTR; the handler must have run, not something else. */
static atomic_int is_paused, handled;

static void handle(int number) { handled = number; }

static int waits_pause(void) {
  handled = 0;
  is_paused = 1;
  errno = 0;
  const int result = pause();
  return result == -1 && errno == EINTR && handled == SIGUSR2 ? 0 : set_errno(EINTR);
}

int is_pausing(void) { return is_paused; }

void hold_locks(void) {
  require(flock(lock_file_of_helper, LOCK_EX) == 0, "flock");
  struct flock lock = lock_of(F_WRLCK);
  require(fcntl(lock_file_of_helper, F_OFD_SETLKW, &lock) == 0, "fcntl");
  sleep_ms(kHelpMs);
  lock.l_type = F_UNLCK;
  fcntl(lock_file_of_helper, F_OFD_SETLK, &lock);
  flock(lock_file_of_helper, LOCK_UN);
}

void prepare_waiting_calls(void) {
  epoll = epoll_create1(0);
  require(pipe2(silent_pipe, O_CLOEXEC) == 0 && pipe2(read_pipe, O_CLOEXEC) == 0, "pipe");
  require(socketpair(AF_UNIX, SOCK_STREAM, 0, silent_sockets) == 0, "socketpair");
  const struct timeval patience = {0, kWaitMs * 1000L};
  setsockopt(silent_sockets[0], SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  semaphores = semget(IPC_PRIVATE, 1, 0600);
  messages = msgget(IPC_PRIVATE, 0600);
  require(semaphores >= 0 && messages >= 0, "semget, msgget");
  listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  require(bind(listener, (struct sockaddr*)&address, address_size) == 0, "bind");
  require(listen(listener, 8) == 0, "listen");
  getsockname(listener, (struct sockaddr*)&address, &address_size);
  full_listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  unlink(full_address.sun_path);
  const struct sockaddr* const full = (const struct sockaddr*)&full_address;
  require(bind(full_listener, full, sizeof full_address) == 0, "bind");
  require(listen(full_listener, 0) == 0 && connect_to_full() == 0, "connect");
  lock_file = open("lock", O_CREAT | O_RDWR | O_CLOEXEC, 0600);
  lock_file_of_helper = open("lock", O_RDWR | O_CLOEXEC);
  require(lock_file >= 0 && lock_file_of_helper >= 0, "open");
  sem_init(&never, 0, 0);
  const struct sigaction action = {.sa_handler = handle};
  sigaction(SIGUSR2, &action, NULL);
  sigset_t blocked;
  sigemptyset(&blocked);
  sigaddset(&blocked, SIGUSR1);
  pthread_sigmask(SIG_BLOCK, &blocked, NULL);
}

void end_waiting_calls(void) {
  semctl(semaphores, 0, IPC_RMID);
  msgctl(messages, IPC_RMID, NULL);
}

const struct waiting_call waiting_calls[] = {
    {.name = "nanosleep", .wait = waits_nanosleep, .is_timed = 1},
    {.name = "clock_nanosleep", .wait = waits_relative, .is_timed = 1},
    {.name = "clock_nanosleep-absolute", .wait = waits_absolute, .is_timed = 1},
    {.name = "poll", .wait = waits_poll, .is_timed = 1},
    {.name = "ppoll", .wait = waits_ppoll, .is_timed = 1},
    {.name = "select", .wait = waits_select, .is_timed = 1},
    {.name = "pselect", .wait = waits_pselect, .is_timed = 1},
    {.name = "epoll_wait", .wait = waits_epoll, .is_timed = 1},
    {.name = "pthread_cond_timedwait", .wait = waits_condition, .is_timed = 1},
    {.name = "sem_timedwait", .wait = waits_semaphore, .is_timed = 1},
    {.name = "recv", .wait = waits_recv, .is_timed = 1},
    {.name = "semtimedop", .wait = waits_semtimedop, .is_timed = 1},
    {.name = "sigtimedwait", .wait = waits_signal, .is_timed = 1},
    {.name = "wait4", .wait = waits_wait4},
    {.name = "waitid", .wait = waits_waitid},
    {.name = "read", .wait = waits_read, .help = help_read},
    {.name = "accept", .wait = waits_accept, .help = help_accept},
    {.name = "connect", .wait = connect_to_full, .help = help_connect},
    {.name = "msgrcv", .wait = waits_msgrcv, .help = help_msgrcv},
    {.name = "flock", .wait = waits_flock},
    {.name = "fcntl", .wait = waits_fcntl},
    {.name = "pause", .wait = waits_pause},
};
const int waiting_calls_count = sizeof waiting_calls / sizeof *waiting_calls;
