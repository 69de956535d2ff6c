/* How long a program of these tests works, and how a test sees that it does. */
#ifndef ARCTRACE_TESTS_ATTACH_ROUNDS_H
#define ARCTRACE_TESTS_ATTACH_ROUNDS_H

#include <fcntl.h>
#include <unistd.h>

/* Asked before each round. A file "round" that somebody has removed is there again then.
 */
static inline int is_stopped(void) {
  const int file = open("round", O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
  if (file >= 0) close(file);
  return access("stop", F_OK) == 0;
}

#endif
