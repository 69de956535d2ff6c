// Two threads compute; prints how long the process had a CPU by the kernel's count, in
// ns.
#include <pthread.h>
#include <stdio.h>
#include <sys/resource.h>
static void* work(void* unused) {
  for (volatile long i = 0; i < 60000000; ++i) {
  }
  return unused;
}
int main(void) {
  pthread_t one, two;
  pthread_create(&one, NULL, work, NULL), pthread_create(&two, NULL, work, NULL);
  pthread_join(one, NULL), pthread_join(two, NULL);
  struct rusage used;
  getrusage(RUSAGE_SELF, &used);
  printf("%lld\n", (used.ru_utime.tv_sec + used.ru_stime.tv_sec) * 1000000000LL +
                       (used.ru_utime.tv_usec + used.ru_stime.tv_usec) * 1000LL);
  return 0;
}
