// Changes the rate of the system's clock: 500 ppm more after the milliseconds of the
// first argument, 500 less after those of the second, and so on. When its input ends, for
// whatever reason, or a minute after the last change, the old rate is restored. Prints
// "slewing" when it has begun; exits with 77, and prints why, if it may not.
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/timex.h>

static int set_rate(long frequency) {
  struct timex change;
  memset(&change, 0, sizeof change);
  change.modes = ADJ_FREQUENCY;
  change.freq = frequency;
  return adjtimex(&change);
}

static int refuse(const char* why) {
  printf("%s\n", why);
  return 77;
}

int main(int argc, char** argv) {
  const long most = 500L << 16;
  signal(SIGINT, SIG_IGN);
  signal(SIGTERM, SIG_IGN);
  signal(SIGHUP, SIG_IGN);
  signal(SIGPIPE, SIG_IGN);
  struct timex before;
  memset(&before, 0, sizeof before);
  if (adjtimex(&before) < 0) return refuse(strerror(errno));
  if ((before.status & STA_UNSYNC) == 0) return refuse("the clock is disciplined by NTP");
  if (set_rate(before.freq) < 0) return refuse(strerror(errno));
  struct pollfd input = {.fd = 0, .events = POLLIN};
  printf("slewing\n");
  fflush(stdout);
  for (int i = 1; i <= argc; ++i) {
    if (poll(&input, 1, i < argc ? atoi(argv[i]) : 60000) != 0) break;
    if (i < argc) set_rate(i % 2 != 0 ? most : -most);
  }
  return set_rate(before.freq) < 0 ? 1 : 0;
}
