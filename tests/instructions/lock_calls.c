/* Lock calls that do not wait; see calls.c. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define ROUNDS 201
#define MARK(round) \
  if ((round) == last_round) __asm__ volatile("int3")

static const volatile int last_round = ROUNDS - 1;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

int main(int argc, char** argv) {
  if (argc != 2) return EXIT_FAILURE;
  const int tries = strcmp(argv[1], "tried") == 0;
  for (int i = 0; i < ROUNDS; ++i) {
    MARK(i);
    if (tries) {
      if (pthread_mutex_trylock(&mutex) != 0) return EXIT_FAILURE;
    } else {
      pthread_mutex_lock(&mutex);
    }
    pthread_mutex_unlock(&mutex);
    MARK(i);
  }
  return EXIT_SUCCESS;
}
