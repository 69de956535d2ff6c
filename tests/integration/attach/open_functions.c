/* open_functions MODE: works within functions that are open when it is joined, until
 * there is a file "leave", then in others, until there is a file "stop". The modes:
 *
 * calls: main > outer > inner > loop; then main > outer > sibling, which is called where
 * inner was; then main > last.
 *
 * threads: the same in three threads, from thread_main.
 *
 * handler: main > spin > on_tick > loop, on the same stack, in a handler.
 *
 * signal_stack: the same on a signal stack.
 *
 * blind: main > outer > call_blindly > inner > loop, where no unwind table has
 * call_blindly.
 *
 * deep: main > descend, 700 times > loop.
 *
 * waits: main > last, and threads that make no call meanwhile: wait_in_read > read_input,
 * wait_for_word > take_word, wait_in_room > read_in_room, whose frame is found by its
 * frame pointer, and compute, which does not wait. */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "rounds.h"

#ifdef __clang__
#define APART __attribute__((noinline))
#else
#define APART __attribute__((noinline, noclone))
#endif

/* An access after a call keeps it from being the last act of a function, which would be a
 * jump. */
static volatile int steps_done;

static void rest(void) {
  const struct timespec time = {0, 1000000};
  nanosleep(&time, NULL);
}

APART void loop(const char* until) {
  while (access(until, F_OK) != 0 && !is_stopped()) {
    getppid();
    rest();
  }
  ++steps_done;
}

APART void inner(void) {
  loop("leave");
  ++steps_done;
}

APART void sibling(void) {
  for (int i = 0; i < 20; ++i) {
    geteuid();
    rest();
  }
  ++steps_done;
}

typedef void step(void);
static step* volatile steps[] = {inner, sibling};

APART void outer(void) {
  for (int i = 0; i < 2; ++i) steps[i]();
  ++steps_done;
}

APART void last(void) {
  while (!is_stopped()) {
    getgid();
    rest();
  }
  ++steps_done;
}

static void* thread_main(void* unused) {
  outer();
  last();
  return unused;
}

static int is_handling;

APART void on_tick(int number) {
  (void)number;
  if (is_handling++ == 0) loop("leave");
  ++steps_done;
}

APART void spin(void) {
  while (steps_done < 2) {
  }
  last();
  ++steps_done;
}

static void handle(int flags) {
  static char memory[1 << 16];
  const stack_t stack = {.ss_sp = memory, .ss_size = sizeof memory};
  if (flags != 0) sigaltstack(&stack, NULL);
  struct sigaction action = {.sa_handler = on_tick, .sa_flags = flags};
  sigaction(SIGALRM, &action, NULL);
  const struct itimerval timer = {{0, 0}, {0, 1000}};
  setitimer(ITIMER_REAL, &timer, NULL);
}

/* Calls its argument, in a frame that no unwind table describes. */
void call_blindly(step* wanted);
__asm__(
    ".text\n"
    ".globl call_blindly\n"
    ".type call_blindly, @function\n"
    "call_blindly:\n"
    "  push %rbx\n"
    "  sub $32, %rsp\n"
    "  call *%rdi\n"
    "  add $32, %rsp\n"
    "  pop %rbx\n"
    "  ret\n"
    ".size call_blindly, . - call_blindly\n");

APART void outer_of_blind(void) {
  call_blindly(inner);
  ++steps_done;
}

APART void descend(int depth) {
  if (depth == 0) {
    loop("leave");
  } else {
    descend(depth - 1);
  }
  ++steps_done;
}

/* Small, without a call or a loop, so that -P skips it. */
APART int status_after(int steps) { return steps < 0 ? 3 : 7; }

static int pipes[2][2];
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t word = PTHREAD_COND_INITIALIZER;
static int has_word;

APART void read_input(void) {
  char byte;
  while (read(pipes[0][0], &byte, 1) > 0) ++steps_done;
  ++steps_done;
}

static void* wait_in_read(void* unused) {
  read_input();
  ++steps_done;
  return unused;
}

APART void take_word(void) {
  pthread_mutex_lock(&mutex);
  while (has_word == 0) pthread_cond_wait(&word, &mutex);
  pthread_mutex_unlock(&mutex);
  ++steps_done;
}

static void* wait_for_word(void* unused) {
  take_word();
  ++steps_done;
  return unused;
}

APART void read_in_room(size_t size) {
  volatile char room[size];
  room[0] = 0;
  while (read(pipes[1][0], (char*)room, 1) > 0) ++steps_done;
  ++steps_done;
}

static void* wait_in_room(void* unused) {
  read_in_room(100 + (size_t)steps_done % 2);
  ++steps_done;
  return unused;
}

static volatile int is_to_stop;

static void* compute(void* unused) {
  while (!is_to_stop) continue;
  return unused;
}

static void wait_in_threads(void) {
  void* (*const functions[])(void*) = {wait_in_read, wait_for_word, wait_in_room,
                                       compute};
  pthread_t threads[4];
  for (int i = 0; i < 2; ++i) {
    if (pipe(pipes[i]) != 0) abort();
  }
  for (int i = 0; i < 4; ++i) pthread_create(&threads[i], NULL, functions[i], NULL);
  last();
  is_to_stop = 1;
  for (int i = 0; i < 2; ++i) close(pipes[i][1]);
  pthread_mutex_lock(&mutex);
  has_word = 1;
  pthread_cond_signal(&word);
  pthread_mutex_unlock(&mutex);
  for (int i = 0; i < 4; ++i) pthread_join(threads[i], NULL);
}

int main(int count, char** arguments) {
  const char* mode = count > 1 ? arguments[1] : "";
  setbuf(stdout, NULL);
  puts("begins");
  if (strcmp(mode, "threads") == 0) {
    pthread_t threads[3];
    for (int i = 0; i < 3; ++i) pthread_create(&threads[i], NULL, thread_main, NULL);
    for (int i = 0; i < 3; ++i) pthread_join(threads[i], NULL);
  } else if (strcmp(mode, "handler") == 0) {
    handle(0);
    spin();
  } else if (strcmp(mode, "signal_stack") == 0) {
    handle(SA_ONSTACK);
    spin();
  } else if (strcmp(mode, "blind") == 0) {
    outer_of_blind();
    last();
  } else if (strcmp(mode, "waits") == 0) {
    wait_in_threads();
  } else if (strcmp(mode, "deep") == 0) {
    descend(700);
    last();
  } else {
    outer();
    last();
  }
  const int status = status_after(steps_done);
  puts("as always");
  return status;
}
