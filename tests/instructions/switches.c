/* switches COUNT WHAT: counts the steps of a "switch" to a coroutine and back, or of a
 * "call" where no frame is open, while COUNT coroutines have stacks; see calls.c. */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>

#define ROUNDS 201
#define STACK_SIZE (size_t)16384

static const volatile int last_round = ROUNDS - 1;
static ucontext_t own;
static ucontext_t coroutine;

void library_first(void);

static void run(void) {
  for (;;) swapcontext(&coroutine, &own);
}

int main(int argc, char** argv) {
  if (argc != 3) return EXIT_FAILURE;
  const int is_call = strcmp(argv[2], "call") == 0;
  const size_t count = (size_t)atol(argv[1]);
  char* stacks = mmap(NULL, count * STACK_SIZE, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (stacks == MAP_FAILED) return EXIT_FAILURE;
  for (size_t i = 0; i < count; ++i) {
    getcontext(&coroutine);
    coroutine.uc_stack.ss_sp = stacks + i * STACK_SIZE;
    coroutine.uc_stack.ss_size = STACK_SIZE;
    makecontext(&coroutine, run, 0);
  }
  for (int i = 0; i < ROUNDS; ++i) {
    if (i == last_round) __asm__ volatile("int3");
    if (is_call) {
      library_first();
    } else {
      swapcontext(&own, &coroutine);
    }
    if (i == last_round) __asm__ volatile("int3");
  }
  return EXIT_SUCCESS;
}
