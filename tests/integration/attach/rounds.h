/* How long a program of these tests works, and how a test sees that it does. */
#ifndef ARCTRACE_TESTS_ATTACH_ROUNDS_H
#define ARCTRACE_TESTS_ATTACH_ROUNDS_H

#include <fcntl.h>
#include <stdint.h>
#include <unistd.h>

/* Asked before each iteration. If somebody has removed the thread's own file "round-...",
 * it is made again then. An address of the thread names the file, because a number would
 * take a call.
 */
static inline int is_stopped(void) {
  static __thread char name[] = "round-................";
  for (unsigned digit = 0; digit < 16; ++digit) {
    name[6 + digit] = (char)('a' + ((uintptr_t)name >> 4 * digit & 15));
  }
  const int file = open(name, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
  if (file >= 0) close(file);
  return access("stop", F_OK) == 0;
}

#endif
