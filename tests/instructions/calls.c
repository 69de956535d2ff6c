/* Calls functions with compiled-in hooks, as programs do. The calls of the last iteration
 * stand between two breakpoints, between which count_steps counts. */
#include <stdlib.h>
#include <string.h>

#define ROUNDS 201
#define NOINLINE __attribute__((noinline))
#define MARK(round) \
  if ((round) == last_round) __asm__ volatile("int3")

static const volatile int last_round = ROUNDS - 1;

NOINLINE static void first(void) { __asm__ volatile("" ::: "memory"); }
NOINLINE static void second(void) { __asm__ volatile("" ::: "memory"); }

NOINLINE static void repeated(void) {
  for (int i = 0; i < ROUNDS; ++i) {
    MARK(i);
    first();
    MARK(i);
  }
}

NOINLINE static void in_turn(void) {
  for (int i = 0; i < ROUNDS; ++i) {
    MARK(i);
    first();
    second();
    MARK(i);
  }
}

NOINLINE static void through_pointers(void) {
  void (*const volatile functions[])(void) = {first, second};
  for (int i = 0; i < ROUNDS; ++i) {
    MARK(i);
    functions[0]();
    functions[1]();
    MARK(i);
  }
}

#define TEN(what) what what what what what what what what what what

NOINLINE static void others(void) { TEN(first(); second();) }

/* Calls one function from 40 places, 20 times from each. */
NOINLINE static void in_many_places(void) {
  for (int i = 0; i < ROUNDS; ++i) {
    MARK(i);
    TEN(others(); others(); others(); others();)
    MARK(i);
  }
}

/* The breakpoints are around the innermost call. */
NOINLINE static void recurse(int depth, int round) {
  if (depth == 1) MARK(round);
  if (depth > 0) recurse(depth - 1, round);
  if (depth == 1) MARK(round);
  __asm__ volatile("" ::: "memory");
}

NOINLINE static void recursive(void) {
  for (int i = 0; i < ROUNDS; ++i) recurse(50, i);
}

int main(int argc, char** argv) {
  if (argc != 2) return EXIT_FAILURE;
  if (strcmp(argv[1], "repeated") == 0) repeated();
  if (strcmp(argv[1], "in_turn") == 0) in_turn();
  if (strcmp(argv[1], "through_pointers") == 0) through_pointers();
  if (strcmp(argv[1], "in_many_places") == 0) in_many_places();
  if (strcmp(argv[1], "recursive") == 0) recursive();
  return EXIT_SUCCESS;
}
