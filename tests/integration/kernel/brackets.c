// Makes frames around one system call each, for the seconds of the first argument, or
// longer: the kernel's stamps lie between the user's stamps of the frame.
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

void bracket(void) { syscall(SYS_getsid, 0); }

int main(int argc, char** argv) {
  const long rounds = argc > 1 ? atol(argv[1]) * 500 : 500;
  printf("tid %d\n", (int)getpid());
  fflush(stdout);  // tells the reader that the program has begun
  for (long i = 0; i < rounds; ++i) {
    const struct timespec pause = {0, 2000000};
    nanosleep(&pause, NULL);
    bracket();
  }
  printf("brackets %ld\nsyscall %d\n", rounds, SYS_getsid);
  return 0;
}
