/* allocates: threads allocate, write, check and free memory until there is a file "stop",
 * and hand half of it to each other; the program is joined meanwhile. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rounds.h"

enum { kThreads = 4, kKept = 64, kBlocksPerRound = 20000, kSizeMax = 9000 };

struct block {
  size_t size;
  unsigned char bytes[];
};

static _Atomic(struct block*) handed;

static void check_and_free(struct block* block) {
  if (block == NULL) return;
  const unsigned char mark = (unsigned char)block->size;
  for (size_t i = 0; i < block->size; ++i) {
    if (block->bytes[i] == mark) continue;
    puts("a block has changed");
    exit(1);
  }
  free(block);
}

static void* allocates(void* seed) {
  struct block* kept[kKept] = {0};
  unsigned random = *(unsigned*)seed;
  while (!is_stopped()) {
    for (int i = 0; i < kBlocksPerRound; ++i) {
      random = random * 1664525 + 1013904223;
      const size_t size = (random >> 8) % ((random >> 30) == 0 ? kSizeMax : 200);
      struct block* block = malloc(sizeof *block + size);
      if (block == NULL) abort();
      block->size = size;
      memset(block->bytes, (unsigned char)size, size);
      if (i % 2 == 0) block = atomic_exchange(&handed, block);
      struct block** const place = &kept[(random >> 20) % kKept];
      check_and_free(*place);
      *place = block;
    }
  }
  for (int i = 0; i < kKept; ++i) check_and_free(kept[i]);
  return NULL;
}

int main(void) {
  pthread_t ids[kThreads];
  unsigned seeds[kThreads];
  puts("begins");
  fflush(stdout);
  for (unsigned i = 0; i < kThreads; ++i) {
    seeds[i] = i;
    if (pthread_create(&ids[i], NULL, allocates, &seeds[i]) != 0) return EXIT_FAILURE;
  }
  for (int i = 0; i < kThreads; ++i) pthread_join(ids[i], NULL);
  check_and_free(atomic_exchange(&handed, NULL));
  puts("as always");
  return 7;
}
