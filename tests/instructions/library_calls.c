/* Calls of library functions; see calls.c. */
#include <stdlib.h>
#include <string.h>

#define ROUNDS 201
#define MARK(round) \
  if ((round) == last_round) __asm__ volatile("int3")

static const volatile int last_round = ROUNDS - 1;

void library_first(void);
void library_second(void);

int main(int argc, char** argv) {
  if (argc != 2) return EXIT_FAILURE;
  const int in_turn = strcmp(argv[1], "in_turn") == 0;
  for (int i = 0; i < ROUNDS; ++i) {
    MARK(i);
    library_first();
    if (in_turn) library_second();
    MARK(i);
  }
  return EXIT_SUCCESS;
}
