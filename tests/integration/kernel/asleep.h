// Tells whether another thread sleeps, for programs that do something only then. The
// state in /proc/TID/stat does not tell that: a thread that is about to sleep may have
// been preempted on its way, and then nobody has to wake it.
#ifndef ARCTRACE_TESTS_ASLEEP_H
#define ARCTRACE_TESTS_ASLEEP_H

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

// The kernel answers when the thread has left its CPU, or with "running". `number`: the
// system call in which the thread sleeps, -1 for any.
__attribute__((no_instrument_function, unused)) static int is_asleep_in(int tid,
                                                                        long number) {
  char path[64], text[256];
  snprintf(path, sizeof path, "/proc/%d/syscall", tid);
  const int file = open(path, O_RDONLY | O_CLOEXEC);
  const ssize_t size = file < 0 ? 0 : read(file, text, sizeof text - 1);
  if (file >= 0) close(file);
  if (size <= 0) {
    perror(path);
    exit(3);
  }
  text[size] = 0;
  return strncmp(text, "running", 7) != 0 && (number < 0 || atol(text) == number);
}

__attribute__((no_instrument_function, unused)) static void wait_for_sleep_in(
    int tid, long number) {
  const struct timespec pause = {0, 100000};
  while (!is_asleep_in(tid, number)) nanosleep(&pause, NULL);
}

#endif
